"""What people feel of a bulk job on SQLite: `python -m bench.yielding [--seconds 3] [--rounds 6]`.

Sixteen raters (four processes of four threads) write ratings, a job writes traces through `jobs.runner`, both into one
SQLite file. Four manners take turns in short blocks, so that a busy machine hurts them alike:

    nobody      no job runs
    flat out    500 traces a transaction, no pause
    small       20 traces a transaction, no pause
    yielding    20 traces a transaction, then the pause of `jobs.yielding`

Prints a table and one line of JSON.
"""

import argparse
import datetime as dt
import itertools
import json
import math
import multiprocessing
import os
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, NamedTuple

MANNERS = ("nobody", "flat out", "small", "yielding")
CHUNK = {"flat out": 500, "small": 20, "yielding": 20}
RATERS, PROCESSES, STEPS = 16, 4, 8
THINKING = (0.02, 0.18)  # seconds between two ratings of one rater
PAUSE, OVER = -1, -2  # otherwise the number of the block
TEXT = "So the sum of both sides is 12, and x = 4. " * 3


class Figures(NamedTuple):
    """What came of one manner in the blocks that were kept."""

    kept: int
    blocks: int
    waits: list[float]
    steps: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-yielding-"))
    os.environ.update(STEPMARK_DATA=str(folder), STEPMARK_LOG_LEVEL="ERROR")
    os.environ.pop("DATABASE_URL", None)
    try:
        report(measure(options.seconds, options.rounds), options.seconds)
    finally:
        shutil.rmtree(folder)


def measure(seconds: float, rounds: int) -> dict[str, Figures]:
    set_up()
    assignments = lay_out()
    orders = itertools.islice(itertools.cycle(itertools.permutations(MANNERS)), 0, rounds * 7, 7)
    plan = list(itertools.chain(*orders))
    spawn = multiprocessing.get_context("spawn")
    manner, answers, ready = spawn.Value("i", PAUSE), spawn.Queue(), spawn.Barrier(PROCESSES + 2)
    per = RATERS // PROCESSES
    people = [
        spawn.Process(target=rate, args=(manner, plan, answers, ready, assignments[n * per : (n + 1) * per], n))
        for n in range(PROCESSES)
    ]
    job = spawn.Process(target=write_traces, args=(manner, plan, answers, ready))
    everybody = [*people, job]
    for process in everybody:
        process.start()
    ready.wait(timeout=120)
    calm = [calibration()]
    for block, _name in enumerate(plan):
        manner.value = block
        time.sleep(seconds)
        manner.value = PAUSE
        time.sleep(0.3)
        calm.append(calibration())
    manner.value = OVER
    told = [answers.get(timeout=60) for _ in everybody]
    for process in everybody:
        process.join()
    return gathered(plan, told, kept(calm))


def calibration() -> float:
    """How late this process wakes from a short sleep, and how long it takes to count: the median of a few."""
    taken = []
    for _ in range(15):
        began = time.perf_counter()
        time.sleep(0.001)
        sum(range(20_000))
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def kept(calm: list[float]) -> list[bool]:
    """Blocks between two calibrations of which neither took three times the quietest."""
    limit = 3 * min(calm)
    return [max(pair) <= limit for pair in itertools.pairwise(calm)]


def gathered(plan: list[str], told: list[dict[str, Any]], keep: list[bool]) -> dict[str, Figures]:
    found = {}
    for name in MANNERS:
        blocks = [n for n, each in enumerate(plan) if each == name and keep[n]]
        waits = sorted(itertools.chain(*(each["waits"][n] for each in told if "waits" in each for n in blocks)))
        steps = sum(sum(each["steps"][n]) for each in told if "steps" in each for n in blocks)
        found[name] = Figures(len(blocks), plan.count(name), waits, steps)
    return found


def set_up() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()


def lay_out() -> list[tuple[int, int]]:
    """A project with a trace and an opened assignment for each rater."""
    from django.core.management import call_command

    from tests import factories

    call_command("migrate", verbosity=0)
    project = factories.make_project()
    trace = factories.make_trace(project)
    made = [factories.make_assignment(factories.make_rater(project), trace) for _ in range(RATERS)]
    return [(assignment.pk, assignment.rater_id) for assignment in made]


def rate(
    manner: "Synchronized[int]",
    plan: list[str],
    answers: Any,
    ready: Any,
    assignments: list[tuple[int, int]],
    seed: int,
) -> None:
    """What four raters do: think, write a rating, and note how long they waited."""
    set_up()
    ready.wait(timeout=120)
    waits: list[list[float]] = [[] for _ in plan]
    threads = [
        threading.Thread(target=rate_alone, args=(manner, waits, pair, random.Random(seed * 100 + n)))
        for n, pair in enumerate(assignments)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.put({"waits": waits})


def rate_alone(
    manner: "Synchronized[int]", waits: list[list[float]], pair: tuple[int, int], chance: random.Random
) -> None:
    sequence, version = itertools.count(1), 0
    while (now_in := manner.value) != OVER:
        time.sleep(chance.uniform(*THINKING))
        if now_in == PAUSE or manner.value != now_in:
            continue
        began = time.perf_counter()
        version = write_rating(*pair, next(sequence), version)
        waits[now_in].append(time.perf_counter() - began)


def write_rating(assignment: int, rater: int, sequence: int, version: int) -> int:
    """One rating through the verb that the pages call. Says the version that the client knows next."""
    from labeling import judging

    write = judging.WriteIn(sequence=sequence, seen=version, kind="rate", step=0, option=0, rating=1)
    now = dt.datetime.now(dt.UTC)
    return judging.record(assignment_id=assignment, rater_id=rater, client="bench", writes=[write], now=now).version


def write_traces(manner: "Synchronized[int]", plan: list[str], answers: Any, ready: Any) -> None:
    """The job, through the runner that every job goes through."""
    set_up()
    from django.utils import timezone

    from jobs import runner, work

    job = work.ask(kind="bench.traces", by=None, now=timezone.now())
    steps: list[list[int]] = [[] for _ in plan]

    def sleep(seconds: float) -> None:
        if plan[manner.value] == "yielding":
            time.sleep(seconds)

    ready.wait(timeout=120)
    state = runner.run(job.pk, lambda job: chunks(manner, plan, steps), sleep=sleep, lease=dt.timedelta(minutes=10))
    answers.put({"steps": steps, "state": str(state)})


def chunks(manner: "Synchronized[int]", plan: list[str], steps: list[list[int]]) -> Iterator[Any]:
    """Traces are made before the transaction and written in it, as every handler does."""
    numbers = itertools.count(1_000_000)
    while (now_in := manner.value) != OVER:
        if now_in == PAUSE or plan[now_in] not in CHUNK:
            time.sleep(0.01)
            continue
        rows = made(CHUNK[plan[now_in]], numbers)
        yield partial(insert, rows)
        steps[now_in].append(len(rows["labeling_step"][1]))


def made(count: int, numbers: Iterator[int]) -> dict[str, tuple[list[str], list[list[Any]]]]:
    from labeling.models import Option, Problem, Project, Step, Trace

    project, problem, now = Project.objects.get(), Problem.objects.latest("pk"), dt.datetime.now(dt.UTC)
    traces, steps, options = [], [], []
    for number in itertools.islice(numbers, count):
        traces.append(
            Trace(pk=number, project=project, problem=problem, digest=f"{number}", n_steps=STEPS, added_at=now)
        )
        for position in range(STEPS):
            pk = number * STEPS + position
            steps.append(Step(pk=pk, trace_id=number, position=position))
            options.append(Option(pk=pk, step_id=pk, position=0, text=TEXT))
    return {objects[0]._meta.db_table: as_rows(objects) for objects in (traces, steps, options)}


def as_rows(objects: list[Any]) -> tuple[list[str], list[list[Any]]]:
    from django.db import connection

    fields = objects[0]._meta.concrete_fields
    rows = [[field.get_db_prep_save(getattr(each, field.attname), connection) for field in fields] for each in objects]
    return [field.column for field in fields], rows


def insert(rows: dict[str, tuple[list[str], list[list[Any]]]], now: dt.datetime) -> Any:
    from django.db import connection

    from jobs.runner import Progress

    with connection.cursor() as cursor:
        for table, (columns, values) in rows.items():
            names, places = ", ".join(f'"{column}"' for column in columns), ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", values)
    return Progress(0)


def report(found: dict[str, Figures], seconds: float) -> None:
    print(f"{'job':<10} {'kept':>7} {'ratings':>8} {'p50 ms':>8} {'p95 ms':>8} {'max ms':>8} {'steps/s':>9}")
    rows = {name: row(figures, seconds) for name, figures in found.items()}
    for name, r in rows.items():
        kept_of = f"{r['blocks_kept']}/{r['blocks']}"
        print(f"{name:<10} {kept_of:>7} {r['ratings']:>8} ", end="")
        print(f"{r['p50_ms']:>8.1f} {r['p95_ms']:>8.1f} {r['max_ms']:>8.1f} {r['steps_per_s']:>9.0f}")
    measured = all(figures.kept * 2 >= figures.blocks for figures in found.values())
    ratio = round(rows["yielding"]["p95_ms"] / rows["nobody"]["p95_ms"], 2) if measured else None
    print("measured" if measured else "not measured: the machine was too busy")
    print(json.dumps({"bench": "yielding", "p95_yielding_over_nobody": ratio, "figures": rows}))


def row(figures: Figures, seconds: float) -> dict[str, float]:
    quantiles = statistics.quantiles(figures.waits, n=20) if len(figures.waits) > 1 else [math.nan] * 19
    return {
        "blocks_kept": figures.kept,
        "blocks": figures.blocks,
        "ratings": len(figures.waits),
        "p50_ms": round(quantiles[9] * 1000, 2),
        "p95_ms": round(quantiles[18] * 1000, 2),
        "max_ms": round(max(figures.waits, default=math.nan) * 1000, 1),
        "steps_per_s": round(figures.steps / (figures.kept * seconds)) if figures.kept else 0,
    }


if __name__ == "__main__":
    main()
