"""What recording costs: `python -m bench.record [--blocks 40]`.

One rating, a batch of twelve, and a submit, against a bare `INSERT … COMMIT` into a table of the shape of the history,
over the same connection in the same manner: on PostgreSQL a prepared statement that commits itself, on SQLite a
transaction that takes the write lock from the beginning. PostgreSQL is measured where DATABASE_URL names a server, in a
database of its own. Prints a table for each engine, and one line of JSON.
"""

import argparse
import datetime as dt
import itertools
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

STEPS = 12
PER_BLOCK = {"bare insert": 24, "one rating": 24, "batch of 12": 8, "submit": 8}
BOUNDS = {"one rating / bare insert": 4.0, "batch of 12 / one rating": 3.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--here", action="store_true", help="measure in this process; what the parent asks for")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.blocks)))
        return
    told = {"sqlite": _in_child(options.blocks, url="")}
    if os.environ.get("DATABASE_URL"):
        told["postgresql"] = _in_child(options.blocks, url=os.environ["DATABASE_URL"])
    print(json.dumps({"bench": "record", "bounds": BOUNDS, **told}, separators=(",", ":")))


def _in_child(blocks: int, *, url: str) -> dict[str, Any]:
    """Settings are read once a process, so each engine has its own."""
    with tempfile.TemporaryDirectory(prefix="bench-record-") as folder:
        environment = {**os.environ, "STEPMARK_DATA": folder, "SECRET_KEY": secrets.token_hex(25), "DATABASE_URL": url}
        done = subprocess.run(
            [sys.executable, "-m", "bench.record", "--here", "--blocks", str(blocks)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    *shown, last = done.stdout.splitlines()
    print("\n".join(shown))
    told: dict[str, Any] = json.loads(last)
    return told


def measure(blocks: int) -> dict[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.db import connection

    is_postgresql = connection.vendor == "postgresql"
    if is_postgresql:
        connection.settings_dict["TEST"]["NAME"] = f"bench_record_{os.getpid()}"
        former = connection.settings_dict["NAME"]
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    else:
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
    try:
        return _compared(blocks)
    finally:
        if is_postgresql:
            connection.creation.destroy_test_db(former, verbosity=0)


def _compared(blocks: int) -> dict[str, Any]:
    from django.db import connection

    import statements
    from bench import harness

    subjects = [
        harness.Subject(name, run, PER_BLOCK[name]) for name, run in zip(PER_BLOCK, _operations(blocks), strict=True)
    ]
    pid = statements.rows("SELECT pg_backend_pid()", [])[0][0] if connection.vendor == "postgresql" else None
    compared = harness.compare(
        subjects, calibrate=lambda: statements.rows("SELECT 1", []), blocks=blocks, server_pid=pid
    )
    print(harness.table(connection.vendor, compared, "bare insert"))
    ratios = {name: compared.wall(*name.split(" / ")) for name in BOUNDS}
    passed = {name: ratios[name] <= bound if compared.was_measured else None for name, bound in BOUNDS.items()}
    print("  " + ", ".join(f"{name}: {ratios[name]} (at most {bound})" for name, bound in BOUNDS.items()))
    cpu = {name: compared.cpu(*name.split(" / ")) for name in BOUNDS}
    return {"ratios": ratios, "ratios_of_cpu": cpu, "passed": passed, **harness.as_json(compared)}


def _operations(blocks: int) -> Iterator[Any]:
    """In the order of PER_BLOCK. Each run meets rows of its own: nothing is rated twice."""
    import statements
    from tests import factories

    now = factories.NOW
    rater = _rater_with_a_project()
    needed = blocks * (PER_BLOCK["one rating"] // STEPS + 1 + PER_BLOCK["batch of 12"] + PER_BLOCK["submit"])
    assignments = _opened(rater, needed)
    bare, numbers = _bare_insert(now), itertools.count(1)
    transaction = _transaction()

    def insert() -> None:
        with transaction():
            statements.rows(bare, [assignments[0], next(numbers), now])

    yield insert

    yield from _recording(blocks, rater, assignments, now)


def _recording(blocks: int, rater: int, assignments: list[int], now: dt.datetime) -> Iterator[Any]:
    from labeling import judging

    def record(assignment: int, steps: range) -> None:
        writes = [_write(judging, step, now) for step in steps]
        judging.record(assignment_id=assignment, rater_id=rater, client="bench", writes=writes, now=now)

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
    # Only now, as a database that has been at work has long been: plans made for empty tables read them whole.
    _analyse()
    waiting = iter(rated)
    yield lambda: judging.submit(assignment_id=next(waiting), rater_id=rater, client="bench", now=now, by=None)


def _transaction() -> Any:
    """As recording does it on this engine."""
    from contextlib import nullcontext

    from django.db import connection, transaction

    return nullcontext if connection.vendor == "postgresql" else transaction.atomic


def _write(judging: Any, step: int, now: dt.datetime) -> Any:
    return judging.WriteIn(
        sequence=step + 1, seen=step, kind="rate", step=step, option=0, rating=1, active_ms=900, made_at=now
    )


def _rater_with_a_project() -> int:
    from tests import factories

    return factories.make_rater(factories.make_project()).pk


def _opened(rater_id: int, count: int) -> list[int]:
    """That many opened assignments on traces of twelve steps, made in bulk."""
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
    import statements

    statements.rows("ANALYZE", [])


def _bare_insert(now: dt.datetime) -> str:
    """A table of the shape of the history, with its index and without its foreign key, and the insert into it."""
    from django.db import connection

    import statements

    columns = (
        "assignment_id, client, sequence, seen, version, revision, kind, step, option, rating, category, text, "
        "active_ms, arrived_at, was_late, was_applied"
    )
    if connection.vendor == "postgresql":
        statements.rows("CREATE TABLE bench_write (LIKE labeling_write INCLUDING ALL)", [])
    else:
        [(made,)] = statements.rows("SELECT sql FROM sqlite_master WHERE name = %s", ["labeling_write"])
        references = ' REFERENCES "labeling_assignment" ("id") DEFERRABLE INITIALLY DEFERRED'
        statements.rows(made.replace('"labeling_write"', "bench_write").replace(references, ""), [])
    return (
        f"INSERT INTO bench_write ({columns}) VALUES "
        "(%s, 'bench', %s, 0, 1, 1, 'rate', 0, 0, 1, '', '', 900, %s, false, true)"
    )


if __name__ == "__main__":
    main()
