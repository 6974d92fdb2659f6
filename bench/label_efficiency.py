"""Does choosing pay? Real labels (ProcessBench), a pool with 15 % wrong traces, the builtin PRM, 60 to 260 traces.

For every acquisition, as greedy as it can be and as it is served (draws with noise, uniform arm, one per problem): the
area under the learning curve minus that of random reading of the same seed, in risk-set AUC and in its length-matched
form, against traces and against reading hours. Each seed splits the problems anew by sha256 of their text.

    python -m bench.label_efficiency --data DIR [--seeds 100] [--only entropy_per_root_cost …]
"""

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labeling.agreement.arrays import Bools, Floats, Ints
from labeling.agreement.quantiles import t_quantile
from prm import benchmarks
from prm.backends import builtin
from prm.benchmarks import Benchmark
from prm.evaluation import concordance
from prm.evaluation.steps import NONE, Labelled, indexes, is_labelled
from prm.selection import acquisitions, draws, splits
from prm.selection.cost import Reading
from prm.selection.draws import Rules
from prm.selection.pool import Pool

START, BATCH, END = 60, 20, 260
WRONG, FOR_POOL = 0.15, 0.5
READING = Reading()
METRICS = ("risk_set_auc", "length_matched")


@dataclass(frozen=True)
class World:
    """All traces with their features, read once."""

    bench: Benchmark
    seen: builtin.Seen
    starts: Ints
    lengths: Ints
    words: Ints
    characters: Ints
    is_wrong: Bools
    is_labelled: Bools
    hours: Floats  # to read a trace to its first error

    def rows(self, traces: Ints) -> Ints:
        return np.concatenate([np.arange(self.starts[t], self.starts[t] + self.lengths[t]) for t in traces])


@dataclass(frozen=True)
class Split:
    pool: Ints
    judged: Ints
    steps: Labelled  # of the judged traces
    judged_rows: Ints


def read(data: Path) -> World:
    bench = benchmarks.read([data / "processbench" / name for name in ("gsm8k.json", "math.json")])
    lengths = bench.lengths
    steps = [step for trace in bench.traces for step in trace.steps]
    words = np.array([len(step.split()) for step in steps])
    kept = is_labelled(lengths=lengths, first_errors=bench.first_errors)
    traces = np.repeat(np.arange(len(lengths)), lengths)
    cost = np.where(kept, READING.step + READING.word * words, 0.0)
    return World(
        bench=bench,
        seen=builtin.see(bench.traces),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        words=words,
        characters=np.array([len(step) for step in steps]),
        is_wrong=indexes(lengths) == bench.first_errors[traces],
        is_labelled=kept,
        hours=(READING.opening + np.bincount(traces, weights=cost)) / 3600,
    )


def split(world: World, seed: int) -> Split:
    """Problems are parted by their text; of the pool's wrong traces as many stay as make up 15 %."""
    place = np.array([splits.place(trace.problem, salt=f"split {seed}") for trace in world.bench.traces])
    pool, judged = np.flatnonzero(place < FOR_POOL), np.flatnonzero(place >= FOR_POOL)
    right = pool[world.bench.first_errors[pool] == NONE]
    wrong = pool[world.bench.first_errors[pool] != NONE]
    n_wrong = round(len(right) * WRONG / (1 - WRONG))
    kept = np.random.default_rng([1, seed]).permutation(wrong)[:n_wrong]
    rows = world.rows(judged)
    whole = world.bench.judged(np.zeros(int(world.lengths.sum())))
    is_judged = np.zeros(len(world.lengths), dtype=np.bool_)
    is_judged[judged] = True
    steps = whole.keep(is_judged).labelled()
    return Split(np.sort(np.concatenate([right, kept])), judged, steps, rows[world.is_labelled[rows]])


def curve(world: World, there: Split, name: str, *, is_served: bool, seed: int) -> tuple[Floats, Floats]:
    """(points, METRICS), and the hours read at each point."""
    random = np.random.default_rng([2, seed])
    chosen = random.permutation(there.pool)[:START]
    points, hours = [], []
    while True:
        scorer = train(world, chosen)
        points.append(judge(world, there, scorer))
        hours.append(world.hours[chosen].sum())
        if len(chosen) >= END:
            return np.array(points), np.array(hours)
        left = np.setdiff1d(there.pool, chosen)
        chosen = np.concatenate([chosen, next_batch(world, left, scorer, name, is_served, [3, seed, len(chosen)])])


def train(world: World, traces: Ints) -> builtin.Scorer:
    rows = world.rows(traces)
    rows = rows[world.is_labelled[rows]]
    return builtin.train(builtin.keep(world.seen, rows), world.is_wrong[rows])


def judge(world: World, there: Split, scorer: builtin.Scorer) -> tuple[float, ...]:
    steps = there.steps.put(scorer.p_wrong(builtin.keep(world.seen, there.judged_rows)))
    return concordance.risk_set_auc(steps).value or 0.5, concordance.length_matched_auc(steps).value or 0.5


def next_batch(world: World, left: Ints, scorer: builtin.Scorer, name: str, is_served: bool, seed: list[int]) -> Ints:
    rows = world.rows(left)
    pool = Pool(
        lengths=world.lengths[left],
        hazards=scorer.p_wrong(builtin.keep(world.seen, rows)),
        words=world.words[rows],
        characters=world.characters[rows],
        problems=world.bench.problems[left],
        domains=world.bench.sources[left],
        is_answer_wrong=world.bench.is_answer_wrong[left],
    )
    random = np.random.default_rng(seed)
    scores = acquisitions.scores(name, pool, READING)
    if not is_served:
        order = np.lexsort((random.random(len(left)), -scores))
        return left[order[:BATCH]]
    found = draws.batch(
        scores=scores,
        problems=pool.problems,
        domains=pool.domains,
        places=random.random(len(left)),
        size=BATCH,
        rules=Rules(),
        random=random,
    )
    return left[[each.trace for each in found]]


def area(points: Floats, hours: Floats, up_to: tuple[float, float] | None) -> Floats:
    """The mean height of the curve, against traces or between two moments of reading time."""
    if up_to is None:
        return np.asarray((points[:-1] + points[1:]).mean(axis=0) / 2)
    grid = np.linspace(*up_to, 101)
    return np.array([np.interp(grid, hours, column).mean() for column in points.T])


def differences(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> Floats:
    """Against traces for each metric, then against hours."""
    common = (float(other[1][0]), float(min(one[1][-1], other[1][-1])))
    by_traces = area(*one, None) - area(*other, None)
    return np.concatenate([by_traces, area(*one, common) - area(*other, common)])


def spread(values: Floats) -> tuple[float, float]:
    """Mean and the half width of its 95 % interval, over seeds."""
    half = t_quantile(p=0.975, df=len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(half)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.label_efficiency")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds processbench/")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--only", nargs="+", default=[name for name in acquisitions.ACQUISITIONS if name != "random"])
    options = parser.parse_args()
    world = read(options.data)
    found: dict[tuple[str, bool], list[Floats]] = {}
    for seed in range(options.seeds):
        there = split(world, seed)
        base = curve(world, there, "random", is_served=False, seed=seed)
        for name in options.only:
            for is_served in (False, True):
                one = curve(world, there, name, is_served=is_served, seed=seed)
                found.setdefault((name, is_served), []).append(differences(one, base))
    show({key: np.array(rows) for key, rows in found.items()}, options.seeds)


def show(found: dict[tuple[str, bool], Floats], seeds: int) -> None:
    heads = [f"{metric} / {against}" for against in ("traces", "hours") for metric in METRICS]
    print(f"area under the curve from {START} to {END} traces minus random's, {seeds} seeds, 95 % interval\n")
    print(f"{'':38}" + "".join(f"{head:>26}" for head in heads))
    told = {}
    for (name, is_served), rows in found.items():
        title = f"{name} {'as served' if is_served else 'greedy'}"
        cells = [spread(column) for column in rows.T]
        print(f"{title:38}" + "".join(f"{mean:+12.4f} ± {half:.4f}     " for mean, half in cells))
        told[title] = {head: [mean, mean - half, mean + half] for head, (mean, half) in zip(heads, cells, strict=True)}
    print(json.dumps({"seeds": seeds, "areas": told}, separators=(",", ":")))


if __name__ == "__main__":
    main()
