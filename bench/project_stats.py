"""Measure a refresh of a project's statistics with a thousand and a million traces, all labeled twice and settled:
`python -m bench.project_stats [--sizes …] [--rounds N]`.

Each size has its own database on the server of DATABASE_URL. Counters that change with each trace (progress, states by
day, reports by rater, arrivals) may take at most twice as long at the largest size as at the smallest, or 25 ms. The
headline with its breakdowns is computed from all tallies: at most 10 seconds of processor time and 400 MB for a
million. The nightly comparison of counters with rows is measured too.
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
    parser.add_argument("--kept-alone", action="store_true", help="skip the headline, which takes a minute")
    options = parser.parse_args()
    names = [f"of_{size}" for size in options.sizes]
    results: dict[int, dict[str, Any]] = {}
    with databases.temporary_databases(names) as made:
        for size, name in zip(options.sizes, names, strict=True):
            databases.use_database(made[name])
            results[size] = _measure(size, options.rounds, kept_alone=options.kept_alone)
    small, large = results[min(results)]["kept"], results[max(results)]["kept"]
    passed = large <= max(MOST_TIMES * small, MOST_MS) and _is_within_limits(results[max(results)])
    verdict = {"times": round(large / small, 2), "passed": passed}
    print(harness.last_json_line({"bench": "figures", **verdict, "sizes": results}))


def _is_within_limits(results: dict[str, Any]) -> bool:
    spent, memory = (results.get(f"everything, {what}", 0) for what in ("processor", "memory"))
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
        _compute(project_id, now)()  # the first run counts the days of all work
        found["everything, memory"] = round(_memory() - before, 1)
        began = time.process_time()
        found["everything"] = _median(_compute(project_id, now), 1)
        found["everything, processor"] = round(1000 * (time.process_time() - began), 1)
    for name, spent in found.items():
        print(f"{size:>9,}  {name:<22} {spent:9.1f} {'MB' if name.endswith('memory') else 'ms'}")
    return found


def _memory(*, forget: bool = False) -> float:
    """Return the peak memory of this process in MB since the last reset; `forget` resets it."""
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
    """Measure the counters. The first run counts all existing rows and is not measured."""
    from labeling.quality import project_stats, settlements

    project_stats.mark_stats_stale(project_id=project_id, now=now)
    settlements.apply_drift(project_id=project_id, drift=settlements.compute_drift(project_id=project_id))
    project_stats.advance_trace_count(project_id=project_id, now=now)
    return {
        "states": lambda: settlements.count_by_state(project_id),
        "settled": lambda: settlements.count_resolved(project_id),
        "settled by day": lambda: settlements.count_by_day(project_id),
        "reports by rater": lambda: list(settlements.load_rater_totals(project_id)),
        "arrivals": lambda: project_stats.count_traces(project_id=project_id),
    }


def _recount(project_id: int) -> Callable[[], object]:
    from labeling.quality import settlements

    return lambda: settlements.compute_drift(project_id=project_id)


def _compute(project_id: int, now: dt.datetime) -> Callable[[], object]:
    from labeling.quality import project_stats

    return lambda: project_stats.compute_project_stats(project_id=project_id, now=now)


if __name__ == "__main__":
    main()
