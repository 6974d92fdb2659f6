"""Check the accuracy, interval coverage and speed of the agreement statistics: `python -m bench.agreement`.

Each line has a measurement, its threshold, and whether it passes. PostgreSQL is measured if DATABASE_URL is set, and
public crowds are measured if `--data` names the folder with `oracles/`. `--quick` runs a tenth of the replications,
which is not enough for a verdict.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import (
    agreement_coverage,
    agreement_population,
    agreement_speed,
    agreement_tallies,
    consensus_quality,
    databases,
    public_crowds,
)
from bench.simulated_raters import Kind
from stats import intervals, label_votes, sequential_tests

_NO_THRESHOLD = "none"


@dataclass(frozen=True)
class BenchmarkLine:
    """One measurement. `holds` is empty (None) without a threshold or a measured value."""

    what: str
    found: str
    bar: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        if self.holds is None:
            return "shown" if self.bar == _NO_THRESHOLD else "not measured"
        return "holds" if self.holds else "FAILS"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", metavar="DIR", type=Path, help="folder with oracles/")
    options = parser.parse_args()
    lines = []
    for line in _measure_all(10 if options.quick else 1, options.data):
        lines.append(line)
        print(f"{line.verdict:>12}  {line.what}: {line.found}  (bar: {line.bar})", flush=True)
    verdicts = Counter(line.verdict for line in lines)
    print(", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()))
    print(json.dumps([{"what": line.what, "found": line.found, "verdict": line.verdict} for line in lines]))
    return 1 if verdicts["FAILS"] else 0


def _measure_all(share: int, data: Path | None) -> Iterator[BenchmarkLine]:
    yield from _speed()
    yield from _public_crowds(data)
    yield from _coverage(4000 // share)
    yield from _sequential_test(8000 // share)
    yield from _consensus(max(30 // share, 5))
    yield from _population(max(40 // share, 5))


def _speed() -> Iterator[BenchmarkLine]:
    own, foreign, apart = agreement_speed.time_krippendorff()
    found = f"{own:.3f} s, krippendorff's three alphas {foreign:.3f} s, ratio {own / foreign:.2f}"
    yield BenchmarkLine(
        "all step statistics with both intervals, 1 million ratings", found, "ratio ≤ 0.3", own <= 0.3 * foreign
    )
    yield BenchmarkLine("largest difference to krippendorff", f"{apart:.1e}", "≤ 1e-9", bool(apart <= 1e-9))
    seconds, rounds = agreement_speed.time_dawid_skene()
    yield BenchmarkLine("Dawid–Skene, 1 million votes", f"{seconds:.2f} s, {rounds} rounds", "≤ 5 s", seconds <= 5)
    yield from _in_database(databases.server())


def _in_database(url: str) -> Iterator[BenchmarkLine]:
    what = "all step statistics in the database, 1 million ratings"
    seconds, apart = agreement_speed.in_database(url)
    yield BenchmarkLine(f"{what}, from ratings", f"{seconds:.3f} s", "≤ 0.5 s", seconds <= 0.5)
    yield BenchmarkLine("largest difference to memory, from ratings", f"{apart:.1e}", "≤ 1e-9", bool(apart <= 1e-9))
    tallies = agreement_tallies.measure()
    yield BenchmarkLine(f"{what}, from tallies", f"{tallies.headline:.3f} s", "≤ 0.1 s", tallies.headline <= 0.1)
    yield BenchmarkLine("all figures of that project", f"{tallies.everything:.2f} s", _NO_THRESHOLD, None)
    apart = tallies.apart
    yield BenchmarkLine("largest difference to memory, from tallies", f"{apart:.1e}", "≤ 1e-9", bool(apart <= 1e-9))


def _public_crowds(data: Path | None) -> Iterator[BenchmarkLine]:
    crowds = {
        "bluebirds": (public_crowds.load_bluebirds, 0.89),
        "product matching": (public_crowds.load_products, 0.935),
    }
    for name, (read, bar) in crowds.items():
        what, threshold = f"Dawid–Skene on {name}, share right", f"≥ {bar}"
        if data is None:
            yield BenchmarkLine(what, "--data names no folder", threshold, None)
            continue
        votes, truth = read(data)
        found = float((label_votes.fit_votes(votes).labels == truth).mean())
        plain = float((label_votes.take_majority(votes)[0] == truth).mean())
        yield BenchmarkLine(what, f"{found:.3f}, majority {plain:.3f}", threshold, found >= bar)


def _coverage(replications: int) -> Iterator[BenchmarkLine]:
    for row in agreement_coverage.measure(replications=replications):
        around = intervals.wilson_interval(right=round(row.covered * replications), n=replications)
        found = f"{row.covered:.3f} [{around.low:.3f}, {around.high:.3f}], {row.without_interval} without interval"
        holds = 0.93 <= row.covered <= row.at_most
        bar = "≥ 93 %" if row.at_most == 1 else "93–97 %"
        yield BenchmarkLine(f"coverage of {row.statistic}, {row.problems} problems", found, bar, holds)
    zero = agreement_coverage.random_raters()
    yield BenchmarkLine("random raters: intervals of alpha that hold 0", f"{zero:.3f} of 200", "≥ .90", zero >= 0.9)


def _sequential_test(runs: int) -> Iterator[BenchmarkLine]:
    random = np.random.default_rng(3)
    for p0 in (0.85, 0.65):
        plan = sequential_tests.make_plan(p0=p0)
        for p, is_good in ((plan.p0, True), (plan.p1, False)):
            paused_at = sequential_tests.run_tests(random.random((runs, 400)) < p, plan)
            paused = float((paused_at != sequential_tests.NEVER_PAUSED).mean())
            after = float(np.median(paused_at[paused_at != sequential_tests.NEVER_PAUSED]))
            what = f"raters at {'p0' if is_good else 'p1'} = {p:.2f} paused within 400 gold"
            found, bar = f"{paused:.3f} of {runs}, half of those by gold {after:.0f}", "≤ .05" if is_good else "≥ .95"
            yield BenchmarkLine(what, found, bar, paused <= 0.05 if is_good else paused >= 0.95)


def _consensus(seeds: int) -> Iterator[BenchmarkLine]:
    for kind in consensus_quality.KINDS:
        row = consensus_quality.compare_consensus(kind, raters=3, seeds=seeds)
        shares = ", ".join(f"{name} {share:.3f}" for name, share in row.accuracy.items())
        yield BenchmarkLine(f"first errors found, 3 raters, {kind}", shares, _NO_THRESHOLD, None)
        low, high = row.over_steps
        yield BenchmarkLine(
            f"first-error over step Dawid–Skene, {kind}", f"[{low:+.3f}, {high:+.3f}]", "not below 0", high >= 0
        )
        low, high = row.over_majority
        own = kind == "own"
        bar, holds = ("above 0", low > 0) if own else (_NO_THRESHOLD, None)
        yield BenchmarkLine(
            f"first-error Dawid–Skene over step majority, {kind}", f"[{low:+.3f}, {high:+.3f}]", bar, holds
        )
        yield from _consensus_trust(kind, seeds)


def _population(seeds: int) -> Iterator[BenchmarkLine]:
    for row in agreement_population.measure(seeds=seeds):
        found = f"{row.headline:+.3f} (uniform arm alone {row.uniform_arm:+.3f}, all pooled {row.pooled:+.3f})"
        what = f"{row.figure} under active choice and third opinions, shift of the headline"
        yield BenchmarkLine(what, found, "within .01", abs(row.headline) <= 0.01)


def _consensus_trust(kind: Kind, seeds: int) -> Iterator[BenchmarkLine]:
    row = consensus_quality.measure_trust(kind, seeds=seeds)
    found = f"{row.error_before:.3f} → {row.error_after:.3f} at temperature {row.temperature:.2f}"
    yield BenchmarkLine(f"calibration error before and after gold, {kind}", found, _NO_THRESHOLD, None)
    found = f"{row.delivered:.3f} of the {row.accepted:.0%} accepted; {row.kept_no_promise} of {seeds} accept nothing"
    yield BenchmarkLine(f"automatic acceptance promised .90, {kind}", found, "≥ .88", row.delivered >= 0.88)


if __name__ == "__main__":
    sys.exit(main())
