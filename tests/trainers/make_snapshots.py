"""Make the snapshots that `tests/trainers/check_snapshots.py` reads, in a temporary data folder."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import django
import msgspec

from supervisor import database


def main(folder: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command

    from tests.formats import prm800k_lines as prm

    call_command("migrate", verbosity=0)
    file = folder / "labelled.jsonl"
    human = {"text": "So 6.", "rating": None, "source": "human", "flagged": False}
    written: dict[str, object] = {"completions": [], "human_completion": human, "chosen_completion": None}
    with file.open("wb") as lines:
        for number in range(40):
            wrong = prm.make_step("4 + 2 = 7", -1, "4 + 2 = 8", chosen=None)
            wrong["completions"].append({"text": "4 + 2 = 6", "rating": 1, "flagged": False})
            last = written if number % 4 == 1 else prm.make_step("So 7.")
            steps = [prm.make_step("2 + 2 = 4"), *([prm.make_step("4 + 2 = 7", 0), last] if number % 2 else [wrong])]
            finish = "solution" if number % 2 else "found_error"
            problem = f"Two and two and {number}?"
            lines.write(
                prm.make_line(problem=problem, labeler=f"r{number % 3}", steps=steps, finish_reason=finish) + b"\n"
            )
    call_command("import_traces", str(file), "--project", "trained-on")
    graded = folder / "graded.jsonl"
    full = {"problem": "What is 1 + 1?", "steps": ["It is 2."], "final_answer": "2", "is_right": True, "policy": "m"}
    minimal = {"problem": "What is 2 + 1?", "steps": ["It is 2."], "is_right": False}
    graded.write_text("".join(json.dumps(each) + "\n" for each in (minimal, full)))
    call_command("import_traces", str(graded), "--project", "graded")
    formats = ("prm800k", "trl", "math_shepherd", "rlhflow", "processbench", "steps", "pairs", "first_errors")
    all_formats = [word for name in formats for word in ("--format", name)]
    for ending in ("jsonl", "jsonl.gz", "jsonl.zst", "parquet"):
        out = folder / ending.replace(".", "-")
        formats_of_ending = all_formats[2:] if ending == "parquet" else all_formats  # PRM800K has no Parquet
        call_command(
            "build_snapshot", "--project", "trained-on", "--out", str(out), "--ending", ending, *formats_of_ending
        )
        out = folder / f"outcomes-{out.name}"
        options = ("--format", "outcomes", "--ending", ending)
        call_command("build_snapshot", "--project", "graded", "--out", str(out), *options)
        write_empty_and_full(folder / f"columns-{ending.replace('.', '-')}", ending)


def write_empty_and_full(folder: Path, ending: str) -> None:
    """Write every format with hundreds of empty rows before the first full one, so that types guessed from the
    first rows are wrong. `expected` has the correct rows."""
    from exports import card
    from exports.files import JsonLinesFile, ParquetTableFile, WrittenFile, write_json, write_text
    from formats.catalog import OUTPUT_FORMATS

    written: list[WrittenFile] = []
    for name, of in OUTPUT_FORMATS.items():
        if not of.columns or (not of.is_table and ending == "parquet"):  # without columns, rows have any fields
            continue
        path = folder / f"data/{name}/train.{ending}"
        file = ParquetTableFile(path, of.columns) if ending == "parquet" else JsonLinesFile(path, ending)
        for rows in ([sample_value(of.columns, is_full=False)] * 500, [sample_value(of.columns, is_full=True)]):
            file.write_rows(rows)
        closed = file.close()
        closed.name, closed.format, closed.split = path.relative_to(folder).as_posix(), name, "train"
        written.append(closed)
        write_json(folder / f"expected/{name}.json", [sample_value(of.columns, is_full=full) for full in (False, True)])
    write_text(folder / "README.md", card.write_front_matter("columns", "mit", len(written), written) + "\n")
    write_json(folder / "manifest.json", {"files": [msgspec.to_builtins(each) for each in written]})


VALUES = {"string": "text", "bool": True, "int64": 7, "float64": 0.5}


def sample_value(kind: Any, *, is_full: bool) -> Any:
    """Return a value of a column. Empty values are null, except structures, whose fields are all empty."""
    if isinstance(kind, str):
        return VALUES[kind] if is_full else None
    if isinstance(kind, list):
        return [sample_value(kind[0], is_full=is_full)] if is_full or isinstance(kind[0], dict) else []
    return {name: sample_value(inner, is_full=is_full) for name, inner in kind.items()}


if __name__ == "__main__":
    with database.serve_command(Path(os.environ["STEPMARK_DATA"])):
        main(Path(sys.argv[1]))
