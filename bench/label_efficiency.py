"""Does active selection help? Real labels (ProcessBench), the builtin PRM, a pool with 15% wrong, 60 to 260 traces.

For every acquisition, greedy and as served (noisy draws, a uniform share, one trace per problem): the area under the
learning curve minus that of random selection, in risk-set AUC and in its length-matched form, by traces and by hours.

    python -m bench.label_efficiency --data DIR [--seeds 100] [--only outcome_aware …] [--without-outcomes]

Each seed splits the problems again by sha256 of their text. Seven of ten are the pool, so that 260 traces are at most
half of it: if nearly all traces were labeled in the end, all selections would become similar. Wrong traces are removed
from the pool until 15% are left; removed traces are evaluated too, unless the pool has a trace of their problem. Random
selection is the mean of four runs from the same first 60 traces, because the noise of one run would hide the gain.
"""

import argparse
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import configured_django  # noqa: F401 (before the imports below, which read settings)
from prm import benchmark_evaluation
from prm.backends import builtin
from prm.benchmark_evaluation import BenchmarkSet
from prm.evaluation import step_figures
from prm.evaluation.labeled_steps import NO_ERROR, mask_labeled, step_indexes
from prm.selection import acquisitions, batches
from prm.selection.acquisitions import Pool, ReadingRates
from prm.selection.draws import DrawRules
from stats.arrays import Bools, Floats, Ints
from stats.intervals import t_quantile

START, BATCH, END = 60, 20, 260
WRONG, FOR_POOL, RANDOM_RUNS = 0.15, 0.7, 4
READING = ReadingRates()
METRICS = ("risk_set_auc", "length_matched")
Curve = tuple[Floats, Floats]  # (points, METRICS), and the hours read at each point


@dataclass(frozen=True)
class LabelPool:
    """All traces with their features, read once."""

    bench: BenchmarkSet
    seen: builtin.StepFeatures
    starts: Ints
    lengths: Ints
    words: Ints
    characters: Ints
    is_wrong: Bools
    is_labeled: Bools
    hours: Floats  # to read a trace to its first error
    has_outcomes: bool  # whether selection knows which final answers are wrong

    def rows(self, traces: Ints) -> Ints:
        return np.concatenate([np.arange(self.starts[t], self.starts[t] + self.lengths[t]) for t in traces])


@dataclass(frozen=True)
class JudgedPairs:
    """Each wrong labeled evaluation step, paired with each right one of its stratum (source, place in the trace)."""

    rows: Ints  # evaluation steps
    wrong: Ints  # places in them
    right: Ints
    is_matched: Bools  # of like length

    def judge(self, p_wrong: Floats) -> tuple[float, float]:
        """Return the risk-set AUC and its length-matched form, as `prm.evaluation.step_figures` defines them."""
        above = p_wrong[self.wrong] - p_wrong[self.right]
        in_order = (above > 0) + 0.5 * (above == 0)
        return float(in_order.mean()), float(in_order[self.is_matched].mean())


@dataclass(frozen=True)
class PoolSplit:
    pool: Ints
    pairs: JudgedPairs


def load_pool(data: Path, *, has_outcomes: bool = True) -> LabelPool:
    bench = benchmark_evaluation.read_benchmark([data / "processbench" / name for name in ("gsm8k.json", "math.json")])
    lengths = bench.lengths
    steps = [step for trace in bench.traces for step in trace.steps]
    words = np.array([len(step.split()) for step in steps])
    kept = mask_labeled(lengths=lengths, first_errors=bench.first_errors)
    traces = np.repeat(np.arange(len(lengths)), lengths)
    cost = np.where(kept, READING.step + READING.word * words, 0.0)
    return LabelPool(
        bench=bench,
        seen=builtin.extract_features(bench.traces),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        words=words,
        characters=np.array([len(step) for step in steps]),
        is_wrong=step_indexes(lengths) == bench.first_errors[traces],
        is_labeled=kept,
        hours=(READING.opening + np.bincount(traces, weights=cost)) / 3600,
        has_outcomes=has_outcomes,
    )


def hash_position(problem: str, *, salt: str) -> float:
    """Map a problem to a number in [0, 1) that is the same in every process."""
    digest = hashlib.sha256(f"{salt}\0{problem}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / (1 << 64)


def split_pool(world: LabelPool, seed: int) -> PoolSplit:
    place = np.array([hash_position(trace.problem, salt=f"problems {seed}") for trace in world.bench.traces])
    is_wrong, is_pool = world.bench.first_errors != NO_ERROR, place < FOR_POOL
    right, wrong = np.flatnonzero(is_pool & ~is_wrong), np.flatnonzero(is_pool & is_wrong)
    n_wrong = round(len(right) * WRONG / (1 - WRONG))
    pool = np.sort(np.concatenate([right, np.random.default_rng([1, seed]).permutation(wrong)[:n_wrong]]))
    problems = world.bench.problems
    return PoolSplit(pool, match_pairs(world, np.flatnonzero(~np.isin(problems, problems[pool]))))


def match_pairs(world: LabelPool, judged: Ints) -> JudgedPairs:
    rows = world.rows(judged)
    rows = rows[world.is_labeled[rows]]
    traces = np.repeat(np.arange(len(world.lengths)), world.lengths)[rows]
    stratum = world.bench.sources[traces] * 10_000 + rows - world.starts[traces]
    wrong, right = np.nonzero(
        world.is_wrong[rows][:, None] & ~world.is_wrong[rows][None, :] & (stratum[:, None] == stratum[None, :])
    )
    size = np.log(np.maximum(world.characters[rows], 1))
    return JudgedPairs(rows, wrong, right, np.abs(size[wrong] - size[right]) <= step_figures.MATCHED_WITHIN)


def learning_curve(world: LabelPool, there: PoolSplit, name: str, *, is_served: bool, seed: int, run: int = 0) -> Curve:
    """Return the learning curve. The first traces of a seed are the same for every acquisition and every run."""
    chosen = np.random.default_rng([2, seed]).permutation(there.pool)[:START]
    points, hours = [], []
    while True:
        scorer = train_prm(world, chosen)
        points.append(there.pairs.judge(scorer.p_wrong(builtin.take_steps(world.seen, there.pairs.rows))))
        hours.append(world.hours[chosen].sum())
        if len(chosen) >= END:
            return np.array(points), np.array(hours)
        left, dice = np.setdiff1d(there.pool, chosen), [3, seed, run, len(chosen)]
        chosen = np.concatenate([chosen, next_batch(world, left, scorer, name, is_served, dice)])


def train_prm(world: LabelPool, traces: Ints) -> builtin.BuiltinScorer:
    rows = world.rows(traces)
    rows = rows[world.is_labeled[rows]]
    return builtin.train_scorer(builtin.take_steps(world.seen, rows), world.is_wrong[rows])


def next_batch(
    world: LabelPool, left: Ints, scorer: builtin.BuiltinScorer, name: str, is_served: bool, seed: list[int]
) -> Ints:
    rows = world.rows(left)
    pool = Pool(
        lengths=world.lengths[left],
        hazards=scorer.p_wrong(builtin.take_steps(world.seen, rows)),
        words=world.words[rows],
        characters=world.characters[rows],
        problems=world.bench.problems[left],
        domains=world.bench.sources[left],
        is_answer_wrong=world.bench.is_answer_wrong[left] & world.has_outcomes,
        is_answer_right=world.bench.is_answer_right[left] & world.has_outcomes,
    )
    random = np.random.default_rng(seed)
    if not is_served:
        scores = acquisitions.acquisition_scores(name, pool, READING)
        order = np.lexsort((random.random(len(left)), -scores))
        return left[order[:BATCH]]
    found = batches.draw_batch(
        pool,
        acquisition=name,
        reading=READING,
        places=random.random(len(left)),
        size=BATCH,
        rules=DrawRules(),
        random=random,
    )
    return left[[each.trace for each in found]]


def curve_area(points: Floats, hours: Floats, up_to: tuple[float, float] | None) -> Floats:
    """Return the mean height of the curve, by traces or between two moments of reading time."""
    if up_to is None:
        return np.asarray((points[:-1] + points[1:]).mean(axis=0) / 2)
    grid = np.linspace(*up_to, 101)
    return np.array([np.interp(grid, hours, column).mean() for column in points.T])


def relative_gains(one: Curve, others: Sequence[Curve]) -> Floats:
    """Return the gains over the mean of the others."""
    return np.asarray(np.mean([difference(one, other) for other in others], axis=0))


def difference(one: Curve, other: Curve) -> Floats:
    """Return the difference by traces for each metric, then by hours."""
    common = (float(other[1][0]), float(min(one[1][-1], other[1][-1])))
    by_traces = curve_area(*one, None) - curve_area(*other, None)
    return np.concatenate([by_traces, curve_area(*one, common) - curve_area(*other, common)])


def confidence_interval(values: Floats) -> tuple[float, float]:
    """Return the mean and the half width of its 95 % interval, over seeds."""
    half = t_quantile(p=0.975, df=len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(half)


def share_of_greedy_area(found: dict[tuple[str, bool], Floats], name: str) -> tuple[float, float, float]:
    """Return the greedy area in the first metric, by traces, with an interval from resampled seeds."""
    areas = np.column_stack([found[name, is_served][:, 0] for is_served in (True, False)])
    drawn = np.random.default_rng(4).integers(0, len(areas), (2000, len(areas)))
    again = areas[drawn].mean(axis=1)
    low, high = np.quantile(again[:, 0] / again[:, 1], [0.025, 0.975])
    served, greedy = areas.mean(axis=0)
    return float(served / greedy), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.label_efficiency")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds processbench/")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--without-outcomes", action="store_true", help="hide which final answers are wrong")
    parser.add_argument("--only", nargs="+", default=[name for name in acquisitions.ACQUISITIONS if name != "random"])
    options = parser.parse_args()
    world = load_pool(options.data, has_outcomes=not options.without_outcomes)
    found: dict[tuple[str, bool], list[Floats]] = {}
    for seed in range(options.seeds):
        there = split_pool(world, seed)
        base = [
            learning_curve(world, there, "random", is_served=False, seed=seed, run=run) for run in range(RANDOM_RUNS)
        ]
        for name in options.only:
            for is_served in (False, True):
                one = learning_curve(world, there, name, is_served=is_served, seed=seed)
                found.setdefault((name, is_served), []).append(relative_gains(one, base))
    print_report({key: np.array(rows) for key, rows in found.items()}, options.seeds)


def print_report(found: dict[tuple[str, bool], Floats], seeds: int) -> None:
    heads = [f"{metric} / {against}" for against in ("traces", "hours") for metric in METRICS]
    print(f"area under the curve from {START} to {END} traces minus random's, {seeds} seeds, 95 % interval\n")
    print(f"{'':38}" + "".join(f"{head:>26}" for head in heads))
    told = {}
    for (name, is_served), rows in found.items():
        title = f"{name} {'as served' if is_served else 'greedy'}"
        cells = [confidence_interval(column) for column in rows.T]
        print(f"{title:38}" + "".join(f"{mean:+12.4f} ± {half:.4f}     " for mean, half in cells))
        told[title] = {head: [mean, mean - half, mean + half] for head, (mean, half) in zip(heads, cells, strict=True)}
    kept = {name: share_of_greedy_area(found, name) for name, is_served in found if is_served}
    for name, (share, low, high) in kept.items():
        print(
            f"{name} as served keeps {share:.0%} [{low:.0%}, {high:.0%}] of the greedy area in {METRICS[0]} by traces"
        )
    print(json.dumps({"seeds": seeds, "areas": told, "kept": kept}, separators=(",", ":")))


if __name__ == "__main__":
    main()
