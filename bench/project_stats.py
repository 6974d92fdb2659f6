"""What does one refresh of a project's figures cost at a thousand traces and at a million, all read twice and settled?

`python -m bench.project_stats [--sizes …] [--rounds N]`, on the server of DATABASE_URL. Each size
has a database of its own. What is kept as traces move (progress, states by day, reports by rater, arrivals) may cost at
most twice as much at the largest size as at the smallest, or 25 ms. The headline with everything it is told by is
computed from all tallies: at most 10 seconds of processor and 400 MB for a million. Beside them what the night pays to
hold the counts against rows.
"""

import argparse
import datetime as dt
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import databases, harness

MOST_TIMES, MOST_MS = 2.0, 25.0
MOST_PROCESSOR_MS, MOST_MB = 10_000, 400  # of everything, at the largest size


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kept-alone", action="store_true", help="without the headline, which takes a minute")
    options = parser.parse_args()
    names = [f"of_{size}" for size in options.sizes]
    told: dict[int, dict[str, Any]] = {}
    with databases.temporary_databases(names) as made:
        for size, name in zip(options.sizes, names, strict=True):
            databases.use_database(made[name])
            told[size] = _measure(size, options.rounds, kept_alone=options.kept_alone)
    small, large = told[min(told)]["kept"], told[max(told)]["kept"]
    passed = large <= max(MOST_TIMES * small, MOST_MS) and _is_within_limits(told[max(told)])
    verdict = {"times": round(large / small, 2), "passed": passed}
    print(harness.last_json_line({"bench": "figures", **verdict, "sizes": told}))


def _is_within_limits(told: dict[str, Any]) -> bool:
    spent, memory = (told.get(f"everything, {what}", 0) for what in ("processor", "memory"))
    return bool(spent <= MOST_PROCESSOR_MS and memory <= MOST_MB)


def _measure(size: int, rounds: int, *, kept_alone: bool) -> dict[str, float]:
    from bench import project_stats_fill

    project_id, now = (
        project_stats_fill.fill_database(size),
        project_stats_fill.START + dt.timedelta(days=project_stats_fill.DAYS),
    )
    parts = _parts(project_id, now)
    found = {name: _median(run, rounds) for name, run in parts.items()}
    found["kept"] = round(sum(found.values()), 1)
    found["nightly recount"] = _median(_recount(project_id), 1)
    if not kept_alone:
        before = _memory(forget=True)
        _compute(project_id, now)()  # the first time, the days of all work are counted
        found["everything, memory"] = round(_memory() - before, 1)
        began = time.process_time()
        found["everything"] = _median(_compute(project_id, now), 1)
        found["everything, processor"] = round(1000 * (time.process_time() - began), 1)
    for name, spent in found.items():
        print(f"{size:>9,}  {name:<22} {spent:9.1f} {'MB' if name.endswith('memory') else 'ms'}")
    return found


def _memory(*, forget: bool = False) -> float:
    """The most that this process has held, in MB: since it was last told to forget, or right now where it forgets."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak[1]) / 1024 if peak else 0.0


def _median(run: Callable[[], object], rounds: int) -> float:
    spent = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        spent.append(1000 * (time.perf_counter() - began))
    return round(statistics.median(spent), 1)


def _parts(project_id: int, now: dt.datetime) -> dict[str, Callable[[], object]]:
    """What is kept; the first time, which counts whatever was there before, is not measured."""
    from labeling.quality import project_stats, running_totals, trace_counts

    project_stats.mark_stats_stale(project_id=project_id, now=now)
    running_totals.apply_drift(project_id=project_id, drift=running_totals.compute_drift(project_id=project_id))
    trace_counts.advance_trace_count(project_id=project_id, now=now)
    return {
        "states": lambda: running_totals.count_by_state(project_id),
        "settled": lambda: running_totals.count_resolved(project_id),
        "settled by day": lambda: running_totals.count_by_day(project_id),
        "reports by rater": lambda: list(running_totals.load_rater_totals(project_id)),
        "arrivals": lambda: trace_counts.count_traces(project_id=project_id),
    }


def _recount(project_id: int) -> Callable[[], object]:
    from labeling.quality import running_totals

    return lambda: running_totals.compute_drift(project_id=project_id)


def _compute(project_id: int, now: dt.datetime) -> Callable[[], object]:
    from labeling.quality import project_stats

    return lambda: project_stats.compute_project_stats(project_id=project_id, now=now)


if __name__ == "__main__":
    main()
