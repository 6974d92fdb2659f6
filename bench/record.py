"""Measure saving ratings: `python -m bench.record [--blocks 40]`.

Compares one rating, a batch of twelve, and a submission with a plain prepared `INSERT` with autocommit, into a table
like the rating history and over the same connection. Runs in its own database on the server of DATABASE_URL, and prints
a table and one line of JSON.
"""

import argparse
import datetime as dt
import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench import databases

if TYPE_CHECKING:
    from labeling.assignments import IncomingEdit

STEPS = 12
PER_BLOCK = {"bare insert": 24, "one rating": 24, "batch of 12": 8, "submit": 8}
BOUNDS = {"one rating / bare insert": 4.0, "batch of 12 / one rating": 3.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=40)
    options = parser.parse_args()
    with databases.temporary_databases(["record"]) as made:
        databases.use_database(made["record"])
        found = _compared(options.blocks)
    print(json.dumps({"bench": "record", "bounds": BOUNDS, **found}, separators=(",", ":")))


def _compared(blocks: int) -> dict[str, Any]:

    import rawsql
    from bench import harness

    subjects = [
        harness.MeasuredOperation(name, run, PER_BLOCK[name])
        for name, run in zip(PER_BLOCK, _operations(blocks), strict=True)
    ]
    pid = rawsql.fetch_rows("SELECT pg_backend_pid()", [])[0][0]
    compared = harness.compare_operations(
        subjects, calibrate=lambda: rawsql.fetch_rows("SELECT 1", []), blocks=blocks, server_pid=pid
    )
    print(harness.format_table("record", compared, "bare insert"))
    ratios = {name: compared.wall(*name.split(" / ")) for name in BOUNDS}
    passed = {name: ratios[name] <= bound if compared.was_measured else None for name, bound in BOUNDS.items()}
    print("  " + ", ".join(f"{name}: {ratios[name]} (at most {bound})" for name, bound in BOUNDS.items()))
    cpu = {name: compared.cpu(*name.split(" / ")) for name in BOUNDS}
    return {"ratios": ratios, "ratios_of_cpu": cpu, "passed": passed, **harness.as_json(compared)}


def _operations(blocks: int) -> Iterator[Any]:
    """Return the subjects in the order of PER_BLOCK. Each run uses new rows, so nothing is rated twice."""
    import rawsql
    from tests import factories

    now = factories.NOW
    rater = _rater_with_a_project()
    needed = blocks * (PER_BLOCK["one rating"] // STEPS + 1 + PER_BLOCK["batch of 12"] + PER_BLOCK["submit"])
    assignments = _opened(rater, needed)
    bare, numbers = _bare_insert(now), itertools.count(1)

    def insert() -> None:
        rawsql.fetch_rows(bare, [assignments[0], next(numbers), now])

    yield insert

    yield from _recording(blocks, rater, assignments, now)


def _recording(blocks: int, rater: int, assignments: list[int], now: dt.datetime) -> Iterator[Any]:
    from labeling import assignments as labeling_assignments

    def record(assignment: int, steps: range) -> None:
        writes = [_rating(step, now) for step in steps]
        labeling_assignments.record_edits(
            assignment_id=assignment, rater_id=rater, client="bench", writes=writes, now=now
        )

    n_singles = blocks * PER_BLOCK["one rating"] // STEPS
    singles = ((assignment, step) for assignment in assignments[:n_singles] for step in range(STEPS))

    def one() -> None:
        assignment, step = next(singles)
        record(assignment, range(step, step + 1))

    yield one
    batches = iter(assignments[n_singles : n_singles + blocks * PER_BLOCK["batch of 12"]])
    yield lambda: record(next(batches), range(STEPS))
    rated = assignments[-blocks * PER_BLOCK["submit"] :]
    for assignment in rated:
        record(assignment, range(STEPS))
    # Analyze now: plans made for empty tables would scan them sequentially.
    _analyse()
    waiting = iter(rated)
    yield lambda: labeling_assignments.submit(
        assignment_id=next(waiting), rater_id=rater, client="bench", now=now, by=None
    )


def _rating(step: int, now: dt.datetime) -> "IncomingEdit":
    from labeling.assignments import IncomingEdit

    return IncomingEdit(
        sequence=step + 1, seen=step, kind="rate", step=step, option=0, rating=1, active_ms=900, made_at=now
    )


def _rater_with_a_project() -> int:
    from tests import factories

    return factories.make_rater(factories.make_project()).pk


def _opened(rater_id: int, count: int) -> list[int]:
    """Create this many opened assignments on traces of twelve steps."""
    from labeling.models import Assignment, Option, Rater, Step, Trace
    from tests import factories

    project = Rater.objects.get(pk=rater_id).project
    problem, now = factories.make_problem(project), factories.NOW
    traces = Trace.objects.bulk_create(
        Trace(project=project, problem=problem, digest=f"{number:064}", n_steps=STEPS, added_at=now)
        for number in range(count)
    )
    steps = Step.objects.bulk_create(
        [Step(trace=trace, position=position) for trace in traces for position in range(STEPS)], batch_size=2000
    )
    Option.objects.bulk_create([Option(step=step, position=0, text="x = 4") for step in steps], batch_size=2000)
    in_hand = {"state": "opened", "holds_slot": True, "opened_at": now, "lease_ends_at": now + dt.timedelta(hours=1)}
    rows = [Assignment(project=project, rater_id=rater_id, trace=trace, **in_hand) for trace in traces]
    made = Assignment.objects.bulk_create(rows, batch_size=500)
    return [assignment.pk for assignment in made]


def _analyse() -> None:
    import rawsql

    rawsql.fetch_rows("ANALYZE", [])


def _bare_insert(now: dt.datetime) -> str:
    """Create a table like the history, with its indexes and without foreign keys, and return an insert into it."""

    import rawsql

    columns = (
        "assignment_id, client, sequence, seen, version, revision, kind, step, option, rating, category, text, "
        "active_ms, arrived_at, was_late, was_applied"
    )
    rawsql.fetch_rows("CREATE TABLE bench_write (LIKE labeling_ratingedit INCLUDING ALL)", [])
    return (
        f"INSERT INTO bench_write ({columns}) VALUES "
        "(%s, 'bench', %s, 0, 1, 1, 'rate', 0, 0, 1, '', '', 900, %s, false, true)"
    )


if __name__ == "__main__":
    main()
