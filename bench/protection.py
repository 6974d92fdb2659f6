"""Measure how soon bad raters are paused by the evidence, and how many ordinary raters are paused by mistake.

Two worlds, seeded, and judged by the platform's own decision function:

    campaign   398 traces, overlap 2, hidden gold beside them, eight raters of equal pace: six honest ones with
               accuracies of 0.65 to 0.95, one who calls every step positive, one who finds 30 % of the errors; and the
               same with eight honest raters
    crowd      100 honest raters with accuracies of 0.65 to 0.95, 400 traces each, four domains with error shares of
               0.2 to 0.8; each rater is better in some domains than in others, and half of them work in two only

An honest rater is right on a trace with the rater's accuracy. A wrong result on a trace with an error is "no error"
with the rater's own share of misses (0.2 to 1), otherwise another step.

Times are those of people who read: steps have about 35 words, as in ProcessBench, and a rater needs 0.12 to 0.7 seconds
per word (the raters of the genuine PRM800K records 0.65 to 0.85, so these are fast) and a moment per step. A third of
them read the whole trace first and then rate its steps in 0.2 to 0.7 seconds each. One in twenty traces is skimmed at
three times the pace. One who clicks rates each step in 0.1 to 0.35 seconds.
"""

import argparse
import json
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from stats import rater_protection, rater_signals
from stats.arrays import Floats, Ints
from stats.first_error_reports import ReportArrays
from stats.rater_protection import ObservedWork

GOLD_SHARE = 0.1
ALL_POSITIVE_BY, FINDS_FEW_BY = 25, 60


@dataclass(frozen=True)
class SimulatedRater:
    accuracy: float  # of the exact result
    misses: float = 0.5  # share of wrong results that are "no error"
    detection: float | None = None  # instead of the accuracy: of errors; otherwise "no error"
    stops: float | None = None  # instead of the accuracy: the chance to stop at any step
    domains: tuple[int, ...] = (0, 1, 2, 3)
    skills: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)  # added to the accuracy, by domain
    seconds_per_word: float = 0.3
    reads_first: bool = False
    clicks: bool = False

    def spend(self, words: Ints, n_rated: int, clock: np.random.Generator) -> Floats:
        """Return the seconds spent on each rated step."""
        if self.clicks:
            return np.asarray(clock.uniform(0.1, 0.35, n_rated))
        pace = self.seconds_per_word * (1 / 3 if clock.random() < 0.05 else 1.0) * clock.lognormal(0, 0.3)
        if self.reads_first:
            seconds = clock.uniform(0.2, 0.7, n_rated)
            seconds[0] += pace * words.sum()
            return np.asarray(seconds)
        return np.asarray(pace * words[:n_rated] + clock.lognormal(-0.2, 0.6, n_rated))

    def report(self, truth: int, length: int, domain: int, random: np.random.Generator) -> int:
        if self.stops is not None:
            return min(int(random.geometric(self.stops)) - 1, length)
        if self.detection is not None:
            return truth if random.random() < self.detection else length
        if random.random() < min(self.accuracy + self.skills[domain], 0.99):
            return truth
        if truth < length and random.random() < self.misses:
            return length
        others = [step for step in range(length) if step != truth]
        return int(random.choice(others))


ALL_POSITIVE = SimulatedRater(0.0, detection=0.0)
FINDS_FEW = SimulatedRater(0.0, detection=0.3)
OTHER_BAD_RATERS = {
    "first step": SimulatedRater(0.0, stops=1.0),
    "random step": SimulatedRater(0.0, stops=0.2),
    "finds 10 %": SimulatedRater(0.0, detection=0.1),
    "clicks": SimulatedRater(0.0, detection=0.0, clicks=True),
}


@dataclass
class SimulatedProject:
    """Traces with hidden truths, the queue of a project, and the submissions so far."""

    random: np.random.Generator
    lengths: Ints
    truth: Ints
    domains: Ints
    n_gold: int  # the last traces
    overlap: int = 2
    limit: int = 5
    rows: list[tuple[int, int, int]] = field(default_factory=list)  # trace, rater, end
    is_impossible: list[bool] = field(default_factory=list)  # as many
    words: list[Ints] = field(default_factory=list)  # of each rated step
    seconds: list[Floats] = field(default_factory=list)  # spent on each rated step
    results: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    seen: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    open: list[int] = field(default_factory=list)
    clock: np.random.Generator = field(default_factory=np.random.default_rng)
    answer_seed: int | None = None  # if given, a result depends only on it, the rater and the trace

    @classmethod
    def create(
        cls, *, traces: int, gold: int, error_shares: list[float], overlap: int, seed: int
    ) -> "SimulatedProject":
        random = np.random.default_rng(seed)
        n = traces + gold
        lengths = random.integers(3, 15, n)
        domains = random.integers(0, len(error_shares), n)
        has_error = random.random(n) < np.array(error_shares)[domains]
        truth = np.where(has_error, (random.random(n) * lengths).astype(int), lengths)
        project = cls(random, lengths, truth, domains, gold, overlap)
        project.open = list(range(traces))
        project.clock = np.random.default_rng([seed, 1])  # of its own, so that times change no results
        return project

    def draw_result(self, number: int, rater: SimulatedRater, trace: int) -> int:
        length, seed = int(self.lengths[trace]), self.answer_seed
        answers = self.random if seed is None else np.random.default_rng([seed, number, trace])
        return rater.report(int(self.truth[trace]), length, int(self.domains[trace]), answers)

    def record(self, number: int, rater: SimulatedRater, trace: int) -> int:
        """Let a rater label a trace. Return the result."""
        length, end = int(self.lengths[trace]), self.draw_result(number, rater, trace)
        words = np.maximum(self.clock.lognormal(3.4, 0.55, length), 3).astype(np.int64)
        n_rated = min(end + 1, length)
        seconds = rater.spend(words, n_rated, self.clock)
        is_impossible = rater_signals.is_faster_than_reading(
            ms=1000 * float(seconds.sum()),
            words=int(words[:n_rated].sum()),
            n_fast=int((seconds < rater_signals.FAST_MS / 1000).sum()),
            n_steps=n_rated,
        )
        self.rows.append((trace, number, end))
        self.is_impossible.append(is_impossible)
        self.words.append(words[:n_rated])
        self.seconds.append(seconds)
        self.seen[number].add(trace)
        return end

    def assign(self, number: int, rater: SimulatedRater) -> int | None:
        if self.random.random() < GOLD_SHARE:
            gold = range(len(self.lengths) - self.n_gold, len(self.lengths))
            unseen = [
                trace for trace in gold if trace not in self.seen[number] and self.domains[trace] in rater.domains
            ]
            if unseen:
                return int(self.random.choice(unseen))
        return next((t for t in self.open if t not in self.seen[number] and self.domains[t] in rater.domains), None)

    def submit(self, number: int, rater: SimulatedRater) -> bool:
        trace = self.assign(number, rater)
        if trace is None:
            return False
        end = self.record(number, rater, trace)
        if trace < len(self.lengths) - self.n_gold:
            results = self.results[trace]
            results.append(end)
            most = max(results.count(each) for each in results)
            if len(results) >= self.limit or (len(results) >= self.overlap and most * 2 > len(results)):
                self.open.remove(trace)
        return True

    def observe(self) -> ObservedWork:
        traces, raters, ends = np.array(self.rows).T
        used, index = np.unique(traces, return_inverse=True)
        first_gold = len(self.lengths) - self.n_gold
        n = len(traces)
        return ObservedWork(
            reports=ReportArrays(
                traces=index,
                raters=raters,
                ends=ends,
                is_censored=np.zeros(n, dtype=np.bool_),
                lengths=self.lengths[used],
                problems=used,
                domains=self.domains[used],
            ),
            known={row: {int(self.truth[trace])} for row, trace in enumerate(used.tolist()) if trace >= first_gold},
            is_impossible=np.array(self.is_impossible, dtype=np.bool_),
            is_timed=np.ones(n, dtype=np.bool_),
            is_counted=np.ones(n, dtype=np.bool_),
        )


def draw_honest(random: np.random.Generator, *, is_varied: bool = False) -> SimulatedRater:
    """Draw an honest rater; a varied one differs between domains, and half of these work in two domains only."""
    accuracy, misses = float(random.uniform(0.65, 0.95)), float(random.uniform(0.2, 1.0))
    clock = np.random.default_rng(int(1e9 * accuracy))
    pace, reads_first = float(np.exp(clock.uniform(-2.1, -0.35))), bool(clock.random() < 1 / 3)
    rater = SimulatedRater(accuracy, misses, seconds_per_word=pace, reads_first=reads_first)
    if not is_varied:
        return rater
    skills = random.normal(0, 0.05, 4)
    domains = tuple(sorted(random.choice(4, 2 if random.random() < 0.5 else 4, replace=False).tolist()))
    return replace(rater, domains=domains, skills=tuple((skills - skills.mean()).tolist()))


@dataclass
class Pauses:
    """After how many submissions each rater is paused, and which signals alone would ever have paused each."""

    after: dict[int, int] = field(default_factory=dict)
    alone: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def check(self, project: SimulatedProject, n_submitted: list[int]) -> None:
        for number, evidence in enumerate(rater_protection.weigh_evidence(project.observe())):
            if evidence.is_overwhelming:
                self.after.setdefault(number, n_submitted[number])
            for name, signal in evidence.signals.items():
                if signal.log_e >= -np.log(rater_protection.FALSE_PAUSES):
                    self.alone[name].add(number)


def run_project(
    project: SimulatedProject, raters: list[SimulatedRater], *, rounds: int, every: int, until: set[int] | None = None
) -> Pauses:
    """Let each rater submit one trace per round, and weigh the evidence after every few rounds."""
    pauses, n_submitted = Pauses(), [0] * len(raters)
    for number in range(1, rounds + 1):
        for rater in project.random.permutation(len(raters)).tolist():
            if rater not in pauses.after:
                n_submitted[rater] += project.submit(rater, raters[rater])
        if number % every == 0:
            pauses.check(project, n_submitted)
            if until is not None and until <= pauses.after.keys():
                break
    return pauses


def run_campaign(seed: int, bad: tuple[SimulatedRater, ...] = (ALL_POSITIVE, FINDS_FEW)) -> Pauses:
    """Run a project with eight raters, the bad ones first. Without bad ones, it runs to the end."""
    project = SimulatedProject.create(traces=398, gold=90, error_shares=[0.67], overlap=2, seed=seed)
    raters = [*bad, *(draw_honest(project.random) for _ in range(8 - len(bad)))]
    return run_project(project, raters, rounds=120, every=5, until=set(range(len(bad))) or None)


def run_crowd(seed: int, *, raters: int = 100, traces: int = 400) -> Pauses:
    project = SimulatedProject.create(
        traces=raters * traces // 2, gold=120, error_shares=[0.2, 0.4, 0.6, 0.8], overlap=2, seed=seed
    )
    people = [draw_honest(project.random, is_varied=True) for _ in range(raters)]
    return run_project(project, people, rounds=traces, every=20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--crowds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    began = time.perf_counter()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    figures = measure_campaigns(seeds) | measure_honest(seeds, seeds[: options.crowds])
    print(json.dumps(figures | {"seconds": round(time.perf_counter() - began)}))


def measure_campaigns(seeds: range) -> dict[str, object]:
    runs = [run_campaign(seed) for seed in seeds]
    for seed, run in zip(seeds, runs, strict=True):
        honest = [number for number in run.after if number > 1]
        print(
            f"seed {seed:3}  all positive {run.after.get(0)!s:>4}  30 % {run.after.get(1)!s:>4}  honest {len(honest)}"
        )
    some = seeds[: len(seeds) // 5]
    other_runs = {name: [run_campaign(seed, (rater,)) for seed in some] for name, rater in OTHER_BAD_RATERS.items()}
    others = {name: [run.after.get(0) for run in found] for name, found in other_runs.items()}
    return {
        "all_positive_by_25": sum(run.after.get(0, 999) <= ALL_POSITIVE_BY for run in runs),
        "finds_30_by_60": sum(run.after.get(1, 999) <= FINDS_FEW_BY for run in runs),
        "honest_paused": sum(number > 1 for run in runs for number in run.after),
        "clicks_by_speed_alone": [sum(0 in run.alone["speed"] for run in other_runs["clicks"]), len(some)],
        "others": {name: sorted(999 if after is None else after for after in found) for name, found in others.items()},
    }


def measure_honest(seeds: range, crowds: range) -> dict[str, object]:
    small = [run_campaign(seed, ()) for seed in seeds]
    large = [run_crowd(seed) for seed in crowds]
    for seed, run in zip(crowds, large, strict=True):
        alone = {name: len(raters) for name, raters in run.alone.items()}
        print(f"crowd {seed}  paused {len(run.after)} of 100  by one signal alone {alone}")
    return {
        "paused_of_8_honest": sum(len(run.after) for run in small),
        "paused_of_100_honest": [len(run.after) for run in large],
        "alone_of_8_honest": {name: sum(len(run.alone[name]) for run in small) for name in rater_protection.WEIGHTS},
        "alone_of_100_honest": {name: [len(run.alone[name]) for run in large] for name in rater_protection.WEIGHTS},
    }


if __name__ == "__main__":
    main()
