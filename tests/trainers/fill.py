"""Makes the snapshots that `tests/trainers/check.py` reads: `python -m tests.trainers.fill FOLDER`, with a data folder
of its own."""

import os
import sys
from pathlib import Path

import django


def main(folder: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command

    from tests.labeling.importing import lines_of_prm800k as prm

    call_command("migrate", verbosity=0)
    file = folder / "labelled.jsonl"
    human = {"text": "So 6.", "rating": None, "source": "human", "flagged": False}
    written: dict[str, object] = {"completions": [], "human_completion": human, "chosen_completion": None}
    with file.open("wb") as lines:
        for number in range(40):
            wrong = prm.step("4 + 2 = 7", -1, "4 + 2 = 8", chosen=None)
            wrong["completions"].append({"text": "4 + 2 = 6", "rating": 1, "flagged": False})
            last = written if number % 4 == 1 else prm.step("So 7.")
            steps = [prm.step("2 + 2 = 4"), *([prm.step("4 + 2 = 7", 0), last] if number % 2 else [wrong])]
            finish = "solution" if number % 2 else "found_error"
            problem = f"Two and two and {number}?"
            lines.write(prm.line(problem=problem, labeler=f"r{number % 3}", steps=steps, finish_reason=finish) + b"\n")
    call_command("import_traces", str(file), "--project", "trained-on")
    formats = ("prm800k", "trl", "math_shepherd", "rlhflow", "processbench", "steps", "pairs", "first_errors")
    asked = [word for name in formats for word in ("--format", name)]
    for ending in ("jsonl", "jsonl.gz", "jsonl.zst", "parquet"):
        out = folder / ending.replace(".", "-")
        of = asked[2:] if ending == "parquet" else asked  # PRM800K has no Parquet
        call_command("build_snapshot", "--project", "trained-on", "--out", str(out), "--ending", ending, *of)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
