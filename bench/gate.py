"""How often does the gate accept, reject or leave undecided an equally good and a worse PRM, on real labels?

    python -m bench.gate --data DIR [--draws 200]

The builtin PRM is trained on a third of the problems of ProcessBench's GSM8K and MATH parts; it is the current PRM.
Candidates are trained on another third (equally good except for chance), and on 60 and 20 traces of it (worse).
Held-out sets of 50 to 400 problems are drawn from the last third, by problem and with replacement. The true difference
is the one on the whole last third. For comparison: the share that would be accepted as "not significantly worse".
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from bench.label_efficiency import hash_position
from prm import benchmark_evaluation
from prm.backends import builtin
from prm.benchmark_evaluation import BenchmarkSet
from prm.evaluation import gate, step_figures
from prm.evaluation.labeled_steps import LabeledSteps, mask_labeled, step_indexes
from stats.arrays import Bools, Floats, Ints

SIZES = (50, 100, 200, 400)
SPLITS = 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gate")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds processbench/")
    parser.add_argument("--draws", type=int, default=200, help="held-out sets of each size")
    options = parser.parse_args()
    files = [options.data / "processbench" / name for name in ("gsm8k.json", "math.json")]
    bench = benchmark_evaluation.read_benchmark(files)
    features = builtin.extract_features(bench.traces)
    found: dict[tuple[str, int], list[tuple[float, str, bool]]] = {}
    for split in range(SPLITS):
        place = np.array([hash_position(trace.problem, salt=f"gate {split}") for trace in bench.traces])
        current = train(bench, features, place < 1 / 3)
        other = np.flatnonzero((place >= 1 / 3) & (place < 2 / 3))
        judged = take_labeled(bench, place >= 2 / 3, current.p_wrong(features))
        shuffled = np.random.default_rng(split).permutation(other)
        for name, chosen in (("as many traces", other), ("60 traces", shuffled[:60]), ("20 traces", shuffled[:20])):
            candidate = train(bench, features, np.isin(np.arange(len(place)), chosen))
            steps = take_labeled(bench, place >= 2 / 3, candidate.p_wrong(features))
            truth = step_figures.length_matched_difference(steps, judged.p_wrong).value or 0.0
            for size in SIZES:
                rows = found.setdefault((name, size), [])
                for draw in range(options.draws // SPLITS):
                    rows.append((truth, *decide(steps, judged.p_wrong, size, [split, size, draw])))
    heads = ("problems", "true difference", "accepted", "rejected", "undecided", "not significantly worse")
    print(f"{'candidate trained on':22}" + "".join(f"{head:>{len(head) + 2}}" for head in heads))
    for (name, size), rows in found.items():
        verdicts = Counter(verdict for _, verdict, _ in rows)
        shares = [verdicts[verdict] / len(rows) for verdict in ("accepted", "rejected", "undecided")]
        truth = float(np.mean([truth for truth, _, _ in rows]))
        old = float(np.mean([is_kept for _, _, is_kept in rows]))
        print(f"{name:22}{size:>10}{truth:>+17.3f}{shares[0]:>10.2f}{shares[1]:>10.2f}{shares[2]:>11.2f}{old:>25.2f}")


def train(bench: BenchmarkSet, features: builtin.StepFeatures, is_kept: Bools) -> builtin.BuiltinScorer:
    is_labeled = mask_labeled(lengths=bench.lengths, first_errors=bench.first_errors)
    rows = is_labeled & np.repeat(is_kept, bench.lengths)
    is_wrong = step_indexes(bench.lengths) == np.repeat(bench.first_errors, bench.lengths)
    return builtin.train_scorer(builtin.take_steps(features, rows), is_wrong[rows])


def take_labeled(bench: BenchmarkSet, is_kept: Bools, p_wrong: Floats) -> LabeledSteps:
    return bench.with_scores(p_wrong).keep(is_kept).labeled_steps()


def decide(steps: LabeledSteps, current: Floats, size: int, seed: list[int]) -> tuple[str, bool]:
    """Decide on a held-out set of `size` problems; a problem that is drawn twice counts as two."""
    problems = np.random.default_rng(seed).choice(np.unique(steps.problems), size)
    rows_of = {int(problem): np.flatnonzero(steps.problems == problem) for problem in np.unique(problems)}
    rows: Ints = np.concatenate([rows_of[int(problem)] for problem in problems])
    number = np.repeat(np.arange(size), [len(rows_of[int(problem)]) for problem in problems])
    drawn = LabeledSteps(**{**vars(steps.take(rows)), "problems": number})
    comparison = gate.compare_prms(drawn, current[rows], margin=gate.DEFAULT_MARGIN)
    figure = step_figures.length_matched_auc(drawn)
    reason = gate.decide_gate(candidate=figure, comparison=comparison, alarms=[])
    return reason.verdict, comparison.high is None or comparison.high >= 0


if __name__ == "__main__":
    main()
