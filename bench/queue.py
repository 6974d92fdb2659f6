"""Measure claims against the length of the queue: `python -m bench.queue [--sizes …] [--blocks …]`.

Runs on the server of DATABASE_URL with 1 thousand, 100 thousand and 1 million open traces, and again during a long
transaction. Each size has its own database with 16 raters, 5,000 finished traces each, and six lanes; slots are
released throughout. The baseline is a plain prepared `SELECT … FOR UPDATE SKIP LOCKED` of the next entry. `--rounds`
instead lets 16 raters label 2,000 traces three times each, with skips, expired leases and late submissions, and counts
the faults. `--limits` instead compares a plain project with one that uses chosen traces for everyone and for a group, a
daily quota, a limit on open traces and a budget, at the first of the sizes.
"""

import argparse
import datetime as dt
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bench import databases, harness

if TYPE_CHECKING:
    from bench.queue_fill import FilledQueue
    from labeling.queue import Claim

MAX_GROWTH, MAX_RATIO = "p95 longest / shortest queue", "claim / bare select"
BOUNDS = {MAX_GROWTH: 1.25, MAX_RATIO: 3.0}
BARE, UNPREPARED = "bare select", "bare select, planned each time"
RETURN_EVERY = 10
BEFORE_LONG = 1600  # claims that leave dead rows, which vacuum cannot remove during the open transaction


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--blocks", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--limits", action="store_true")
    options = parser.parse_args()
    if options.limits:
        print(harness.last_json_line({"bench": "queue", **compare_limits(options.sizes[0], options.blocks)}))
        return
    found = crowd_rounds(options.rounds) if options.rounds else compare(options.sizes, options.blocks)
    print(harness.last_json_line({"bench": "queue", "bounds": BOUNDS, **found}))


def compare(sizes: list[int], blocks: int) -> dict[str, Any]:
    with databases.temporary_databases([f"{size}" for size in sizes]) as made:
        claiming = [ClaimingSubject(size, each) for size, each in zip(sizes, made.values(), strict=True)]
        compared = _compare([*(each.claims() for each in claiming), *claiming[-1].bare()], claiming[-1], blocks)
        shortest, longest = claiming[0].name, claiming[-1].name
        results = {"": _ratios(compared, shortest, longest)}
        with _long_transaction(claiming[-1]):
            subjects = [claiming[0].claims(), claiming[-1].claims(), *claiming[-1].bare()]
            compared = _compare(subjects, claiming[-1], blocks)
        results["long transaction open"] = _ratios(compared, shortest, longest)
    return results


def compare_limits(size: int, blocks: int) -> dict[str, Any]:
    """Compare claims in a plain project and in one with chosen traces and all limits."""
    with databases.temporary_databases(["plain", "limits"]) as made:
        plain, limited = ClaimingSubject(size, made["plain"]), ClaimingSubject(size, made["limits"], has_limits=True)
        compared = _compare([plain.claims(), limited.claims(), *plain.bare()], plain, blocks)
    print(harness.format_table("queue", compared, BARE))
    ratios = {"wall": compared.wall(limited.name, plain.name), "cpu": compared.cpu(limited.name, plain.name)}
    return {"limits / plain": ratios, **harness.as_json(compared)}


def _compare(
    subjects: list[harness.MeasuredOperation], longest: "ClaimingSubject", blocks: int
) -> harness.TimeComparison:
    longest.use()
    return harness.compare_operations(subjects, calibrate=_select_1, blocks=blocks)


def _ratios(compared: harness.TimeComparison, shortest: str, longest: str) -> dict[str, Any]:
    print(harness.format_table("queue", compared, BARE))
    ratios = {
        MAX_GROWTH: compared.p95(longest, shortest),
        MAX_RATIO: compared.wall(longest, BARE),
    }
    passed = {name: ratios[name] <= bound if compared.was_measured else None for name, bound in BOUNDS.items()}
    print("  " + ", ".join(f"{name}: {ratio}" for name, ratio in ratios.items()), passed, flush=True)
    cpu = {
        "longest / shortest queue": compared.cpu(longest, shortest),
        "claim / bare select": compared.cpu(longest, BARE),
        "claim / bare select, planned each time": compared.cpu(longest, UNPREPARED),
    }
    return {"ratios": ratios, "ratios_of_cpu": cpu, "passed": passed, **harness.as_json(compared)}


def _select_1() -> None:
    import rawsql

    rawsql.fetch_rows("SELECT 1", [])


class ClaimingSubject:
    """Claims in one database by its raters in turn. Each rater finishes a trace before the next claim is timed."""

    def __init__(self, n_open: int, connection: Any, *, has_limits: bool = False) -> None:
        from bench import queue_fill

        self.connection = connection
        self.name = f"claim, {n_open:,} open" + (", limits" if has_limits else "")
        self.use()
        print(f"filling {n_open:,} …", flush=True)
        self.filled: FilledQueue = queue_fill.fill_database(n_open)
        if has_limits:
            queue_fill.add_limits(self.filled)
        self.raters = itertools.cycle(self.filled.raters)
        self.turns = itertools.count(1)
        self.pid = connection.connection.info.backend_pid

    def claims(self) -> harness.MeasuredOperation:
        return harness.MeasuredOperation(self.name, self.claim, 8, self.use, self.finish, self.pid)

    def bare(self) -> list[harness.MeasuredOperation]:
        return [
            harness.MeasuredOperation(name, run, 8, self.use, server_pid=self.pid)
            for name, run in ((BARE, self._select_prepared), (UNPREPARED, self._select))
        ]

    def use(self) -> None:
        databases.use_database(self.connection)

    def claim(self) -> "Claim":
        from labeling import queue

        return queue.claim_trace(rater_id=next(self.raters), now=dt.datetime.now(dt.UTC))

    def finish(self, claim: "Claim") -> None:
        """Submit the trace, or release it in one of ten cases."""
        from labeling import queue
        from labeling.models import Assignment

        now = dt.datetime.now(dt.UTC)
        mine = Assignment.objects.filter(pk=claim.assignment_id)
        mine.update(state="opened", opened_at=now)
        if next(self.turns) % RETURN_EVERY == 0:
            queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped", by=None)
        else:
            mine.update(state="submitted", submitted_at=now, submitted_revision=1, finish_reason="solution")

    def _select_prepared(self) -> None:
        import rawsql

        rawsql.fetch_rows(_BARE, [self.filled.policy_lane, self.filled.reached])

    def _select(self) -> None:
        self._run(_BARE)

    def _run(self, sql: str) -> Any:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, [self.filled.policy_lane, self.filled.reached])
            return cursor.fetchone()


_BARE = (
    "SELECT id, trace_id, draw_id FROM labeling_queueentry WHERE lane_id = %s AND is_open AND key < %s"
    " ORDER BY key DESC, trace_id DESC LIMIT 1 FOR UPDATE SKIP LOCKED"
)


@contextmanager
def _long_transaction(claiming: ClaimingSubject) -> Iterator[None]:
    """Keep a transaction open, as a long export does, so that vacuum removes no dead rows."""
    other = claiming.connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM labeling_lane")
            cursor.fetchall()
        claiming.use()
        for _ in range(BEFORE_LONG):
            claiming.finish(claiming.claim())
        yield
    finally:
        other.close()


def crowd_rounds(rounds: int) -> dict[str, Any]:
    """Check that every trace gets exactly its number of labels under concurrency."""
    with databases.temporary_databases(["crowd"]) as made:
        databases.use_database(made["crowd"])
        results = [_round(number) for number in range(rounds)]
    faults: Counter[str] = Counter()
    for each in results:
        faults.update(each["faults"])
    errors = sum(len(each["errors"]) for each in results)
    print(f"{rounds} rounds: {errors} errors, {dict(faults)}")
    return {"rounds": rounds, "errors": errors, "faults": faults, "results": results}


def _round(number: int) -> dict[str, Any]:
    from bench import concurrent_raters

    project = concurrent_raters.set_up_project(n_traces=2000, n_raters=16, overlap=3)
    raters = list(project.raters.values_list("pk", flat=True))
    seconds, results = _timed(lambda: concurrent_raters.run_in_processes(raters, seed=number))
    whole = concurrent_raters.merge_results(results)
    faults = concurrent_raters.find_violations(project, 3)
    print(f"round {number + 1}: {seconds:.0f} s, {dict(whole.counts)}, {faults}", *whole.errors[:1], flush=True)
    return {"seconds": round(seconds, 1), "counts": whole.counts, "faults": faults, "errors": whole.errors}


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    began = dt.datetime.now(dt.UTC)
    result = run()
    return (dt.datetime.now(dt.UTC) - began).total_seconds(), result


if __name__ == "__main__":
    main()
