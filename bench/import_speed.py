"""Measure the speed of imports: `python -m bench.import_speed [--traces N]`, on the server of DATABASE_URL.

Blocks of the import alternate with plain COPYs of the same number of prepared rows into the same tables with the same
keys and indexes. `--raters 16` instead imports a whole file while raters are working
(bench/import_speed_with_raters.py).
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import import_speed_with_raters, submission_server

STEPS = 12
BLOCK = 1000  # traces


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--traces", type=int, default=20_000)
    arguments.add_argument("--raters", type=int, default=0, help="number of raters who work during the import")
    arguments.add_argument("--waiting", type=int, default=1_000, help="open traces in their queue")
    arguments.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.inside:
        _run_in_child(given.traces)
        return
    if given.raters:
        import_speed_with_raters.main(given.raters, given.traces, given.waiting)
        return
    with tempfile.TemporaryDirectory() as folder, submission_server.create_database(Path(folder)) as environment:
        command = [sys.executable, "-m", "bench.import_speed", "--inside", "--traces", str(given.traces)]
        sys.exit(subprocess.run(command, env=environment, cwd=submission_server.ROOT, check=False).returncode)


def _run_in_child(traces: int) -> None:
    """Run a part in a separate process with its own settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    path = Path(os.environ["STEPMARK_DATA"]) / "traces.jsonl"
    with path.open("wb") as file:
        file.writelines(make_lines(traces))
    seconds: dict[str, list[float]] = {"import": [], "cpu": [], "copy": [], "calibration": []}
    for block in _blocks(path):
        seconds["calibration"].append(_calibrated())
        wall, cpu = block()
        seconds["import"].append(wall)
        seconds["cpu"].append(cpu)
        seconds["copy"].append(_bare_copy(len(seconds["copy"])))
    _print_report(seconds)


def make_lines(n: int) -> Iterator[bytes]:
    words = ["we", "can", "see", "that", "$x^2 + 3 = 7$", "must hold, and both numbers", "are even;", "therefore"]
    for number in range(n):
        steps = [f"{' '.join(words[at % 5 :])} {number * at}." for at in range(STEPS)]
        record = {"problem": f"What is {number} + {number * 7}?", "answer": str(number * 8), "steps": steps}
        yield json.dumps(record).encode() + b"\n"


def _blocks(path: Path) -> Iterator[Any]:
    """Read, load and commit the file in blocks. Preparing the next block is not measured."""

    from formats import catalog
    from labeling.traces import import_job, load
    from labeling.traces.load import ensure_source
    from tests import factories

    project = factories.make_project("bench")
    state = load.LoadState(
        project=project,
        source=ensure_source(project=project, name="x", format="native", now=factories.NOW),
        enqueues=False,
    )
    with path.open("rb") as stream:
        records = catalog.get_input_format("native").read(stream)
        while True:
            first = next(records, None)
            if first is None:
                return
            rest = itertools.chain([first], itertools.islice(records, BLOCK - 1))

            def block(rest: Iterator[Any] = rest) -> tuple[float, float]:
                wall, cpu = time.perf_counter(), time.process_time()
                for part in load.split_chunks(rest, import_job.CHUNK_RECORDS):
                    load.load_chunk(state=state, records=part, now=factories.NOW)
                return time.perf_counter() - wall, time.process_time() - cpu

            yield block


def _bare_copy(number: int) -> float:
    """Copy and commit prepared rows like those of a block."""
    from django.db import connection, transaction

    from labeling.traces import packed_rows
    from labeling.traces import trace_rows as tables

    with transaction.atomic():
        made = _rows(number)
        texts = {table: _text(found, table.defaults) for table, found in made.by_table.items() if found}
    began = time.perf_counter()
    with transaction.atomic(), connection.cursor() as cursor:
        for table in (*tables.PARENT_TABLES, *tables.CHILD_TABLES):
            if table is tables.CHILD_TABLES[0]:
                packed_rows.STEP.insert(made.steps)
                packed_rows.OPTION.insert(made.options)
            if table in texts:
                names = ", ".join(f'"{name}"' for name in table.columns)
                with cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as copy:
                    copy.write(texts[table])
    return time.perf_counter() - began


def _rows(number: int) -> Any:
    from formats import catalog
    from formats.records import TraceRecord
    from labeling.models import Project, Source
    from labeling.traces.trace_rows import ImportRows, NumberedRecord, TraceRows
    from tests import factories

    project = Project.objects.get(slug="bench")
    others = (line.replace(b"What is", b"How much is %d:" % number) for line in make_lines(BLOCK))
    native = catalog.INPUT_FORMATS["native"]
    import io

    records = [record for record in native.read(io.BytesIO(b"".join(others))) if isinstance(record, TraceRecord)]
    made = ImportRows()
    traces = TraceRows(project, Source.objects.get(project=project), factories.NOW, made)
    traces.find_or_add([NumberedRecord(record, 0) for record in records])
    return made


def _text(rows: list[tuple[Any, ...]], defaults: tuple[Any, ...]) -> bytes:
    def cell(value: Any) -> str:
        if value is None:
            return "\\N"
        return str(value).replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")

    return "".join("\t".join(map(cell, row + defaults)) + "\n" for row in rows).encode()


def _calibrated() -> float:
    began = time.perf_counter()
    sum(range(300_000))
    return time.perf_counter() - began


def _print_report(seconds: dict[str, list[float]]) -> None:
    quietest = min(seconds["calibration"])
    kept = [at for at, took in enumerate(seconds["calibration"]) if took <= 3 * quietest]
    figures: dict[str, Any] = {"kept": len(kept), "blocks": len(seconds["calibration"])}
    if len(kept) * 2 >= len(seconds["calibration"]):
        import_s = statistics.median(seconds["import"][at] for at in kept)
        cpu_s = statistics.median(seconds["cpu"][at] for at in kept)
        figures |= {
            "steps_per_second": round(BLOCK * STEPS / import_s),
            "steps_per_cpu_second": round(BLOCK * STEPS / cpu_s),
        }
        copy_s = statistics.median(seconds["copy"][at] for at in kept)
        figures |= {
            "copy_steps_per_second": round(BLOCK * STEPS / copy_s),
            "share_of_copy": round(copy_s / import_s, 2),
        }
    else:
        figures["verdict"] = "not measured: the machine was too busy"
    figures["memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    for name, value in figures.items():
        print(f"{name:>24}  {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
