"""Measure the speed and memory of snapshot builds: `python -m bench.export [--traces N] [--workers N]`, on the server
of DATABASE_URL.

Rows are in PRM800K format with one rater per trace: read from the manifest, composed, written and hashed. Blocks
alternate with plain `json.dumps` of the same records. Then the whole snapshot is built with one process and with
several, and a snapshot of a tenth of the size is built to compare memory.
"""

import argparse
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

from bench import submission_server

STEPS = 12
BLOCK = 10_000  # half a shard; a block opens connections once, as a shard does
WORDS = (
    "we",
    "can",
    "see",
    "that",
    "$x^2 + 3 \\cdot y = 7$",
    "must hold, and both numbers are even;",
    "therefore",
    "the sum",
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--traces", type=int, default=20_000)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--inside", choices=["fill", "blocks", "whole"], help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.inside:
        _django()
        {"fill": _fill, "blocks": _blocks, "whole": _whole}[given.inside](given.traces, given.workers)
        return
    with tempfile.TemporaryDirectory() as folder, submission_server.create_database(Path(folder)) as environment:
        _run(environment, "fill", given.traces, 1)
        figures = _run(environment, "blocks", given.traces, 1)
        small = _run(environment, "whole", max(given.traces // 10, 1), 1)
        one = _run(environment, "whole", given.traces, 1)
        several = _run(environment, "whole", given.traces, given.workers)
        figures |= {
            "memory_mb_at_a_tenth": small["memory_mb"],
            "memory_mb": one["memory_mb"],
            "growth_mb": round(one["memory_mb"] - small["memory_mb"], 1),
            "seconds_by_one": one["seconds"],
            f"seconds_by_{given.workers}": several["seconds"],
        }
    for name, value in figures.items():
        print(f"{name:>24}  {value}")
    print(json.dumps(figures))


def _run(environment: dict[str, str], what: str, traces: int, workers: int) -> dict[str, Any]:
    """Run a part in a separate process with its own settings and memory."""
    command = [
        sys.executable,
        "-m",
        "bench.export",
        "--inside",
        what,
        "--traces",
        str(traces),
        "--workers",
        str(workers),
    ]
    own = {**environment, "STEPMARK_LOG_LEVEL": "ERROR"}
    done = subprocess.run(command, env=own, cwd=submission_server.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _django() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()


def _fill(traces: int, workers: int) -> None:
    from django.core.management import call_command

    from formats import prm800k
    from formats.raw_values import RawValue
    from labeling.traces import load
    from labeling.traces.load import ensure_source
    from tests import factories

    call_command("migrate", verbosity=0)
    for slug, n in (("whole", traces), ("tenth", max(traces // 10, 1))):
        project = factories.make_project(slug)
        source = ensure_source(project=project, name="x", format="prm800k", now=factories.NOW)
        state = load.LoadState(project=project, source=source, enqueues=False)
        records = (prm800k.parse_value(RawValue(line, number)) for number, line in enumerate(_lines(n), start=1))
        for part in load.split_chunks(records, 500):
            load.load_chunk(state=state, records=part, now=factories.NOW)
    print(json.dumps({}))


def _lines(n: int) -> Iterator[bytes]:
    """Make traces as long as those of PRM800K: two in five without an error, the others with one."""
    for number in range(n):
        texts = [f"{' '.join(WORDS[at % 5 :])} {number * at}." for at in range(STEPS)]
        error = (None, 3, None, 6, 9)[number % 5]
        steps = [
            {
                "completions": [{"text": text, "rating": -1 if at == error else 1, "flagged": None}],
                "human_completion": None,
                "chosen_completion": None if at == error else 0,
            }
            for at, text in enumerate(texts[: STEPS if error is None else error + 1])
        ]
        question = {
            "problem": f"What is {number} + {number * 7}? " + " ".join(WORDS) * 2,
            "ground_truth_solution": " ".join(WORDS * 5),
            "ground_truth_answer": str(number * 8),
            "pre_generated_steps": texts,
            "pre_generated_answer": str(number),
            "pre_generated_verifier_score": number % 97 / 97,
        }
        record = {
            "labeler": f"rater-{number % 20}",
            "timestamp": "2022-11-06T03:24:46.649379",
            "generation": 5,
            "is_quality_control_question": False,
            "is_initial_screening_question": False,
            "question": question,
            "label": {
                "steps": steps,
                "total_time": 21000,
                "finish_reason": "solution" if error is None else "found_error",
            },
        }
        yield json.dumps(record).encode()


def _blocks(traces: int, workers: int) -> None:
    """Alternate blocks of the baseline and the export, and drop blocks during which the machine was busy."""
    from exports.files import JsonLinesFile
    from formats import prm800k
    from labeling.datasets import manifest
    from labeling.datasets.selection import ManifestFilters
    from labeling.models import Project
    from tests import factories

    project = Project.objects.get(slug="whole")
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    seconds: dict[str, list[float]] = {"export": [], "cpu": [], "dumps": [], "calibration": []}
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, frozen.n_rows, BLOCK):
            seconds["calibration"].append(_calibrated())
            path = Path(folder) / f"{start}.jsonl"
            wall, cpu = time.perf_counter(), time.process_time()
            file = JsonLinesFile(path, "jsonl")
            for found in manifest.read_row_chunks(frozen, start=start, stop=start + BLOCK):
                file.write(list(prm800k.write(found)))
            file.close()
            seconds["export"].append(time.perf_counter() - wall)
            seconds["cpu"].append(time.process_time() - cpu)
            records = [json.loads(line) for line in path.read_bytes().splitlines()]
            wall = time.perf_counter()
            for record in records:
                json.dumps(record)
            seconds["dumps"].append(time.perf_counter() - wall)
    print(json.dumps(_figures(seconds)))


def _calibrated() -> float:
    began = time.perf_counter()
    sum(range(300_000))
    return time.perf_counter() - began


def _figures(seconds: dict[str, list[float]]) -> dict[str, Any]:
    quietest = min(seconds["calibration"])
    kept = [at for at, took in enumerate(seconds["calibration"]) if took <= 3 * quietest]
    figures: dict[str, Any] = {"kept": len(kept), "blocks": len(seconds["calibration"])}
    if len(kept) * 2 < len(seconds["calibration"]):
        return {**figures, "verdict": "not measured: the machine was too busy"}
    export, cpu, dumps = (statistics.median(seconds[name][at] for at in kept) for name in ("export", "cpu", "dumps"))
    return {
        **figures,
        "traces_per_second": round(BLOCK / export),
        "share_of_dumps": round(dumps / export, 3),
        "share_of_dumps_by_cpu": round(dumps / cpu, 3),
    }


def _whole(traces: int, workers: int) -> None:
    """Build the snapshot with the management command."""
    import io

    from django.core.management import call_command

    from labeling.models import Submission

    small = Submission.objects.filter(project__slug="tenth").count()
    slug = "tenth" if traces == small else "whole"
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        call_command(
            "build_snapshot", "--project", slug, "--out", folder, "--workers", str(workers), stdout=io.StringIO()
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(time.perf_counter() - began, 1), "memory_mb": round(memory, 1)}))


if __name__ == "__main__":
    main()
