"""Measure the speed of the builtin PRM on a million steps, and of drawing a batch from a pool of 100,000 traces.

    python -m bench.scoring [--steps 1000000] [--traces 100000] [--job]

Scoring measures only the backend, in chunks of the job's size, with the peak memory of the process. Reading the rows of
the pool and drawing from it are measured separately. `--job` scores the steps with the job of a running platform
instead (`bench.scoring_job`).
"""

import argparse
import json
import os
import random
import resource
import time
from collections.abc import Iterator

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("SECRET_KEY", "bench")

import numpy as np

from bench import scoring_job
from prm.backends import builtin
from prm.backends.base import ScorerInput
from prm.selection.acquisitions import Pool, ReadingRates

CHUNK = 500
STEPS_A_TRACE = 8
WORDS = ("then", "we", "add", "numbers", "so", "that", "each", "side", "has", "half", "of", "it", "and", "the", "rest")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scoring")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument(
        "--job", action="store_true", help="run the scoring job with its worker while raters are working"
    )
    options = parser.parse_args()
    if options.job:
        results = scoring_job.measure(options.steps)
    else:
        django.setup()
        results = {**measure_scoring(options.steps), **measure_selection(options.traces)}
    for name, value in results.items():
        print(f"{name:32} {value:>14,.2f}")
    print(json.dumps({name: round(value, 3) for name, value in results.items()}, separators=(",", ":")))


def make_traces(n: int) -> Iterator[ScorerInput]:
    dice = random.Random(0)
    for number in range(n):
        total, steps = dice.randint(2, 90), []
        for _ in range(STEPS_A_TRACE):
            more, words = dice.randint(2, 90), dice.choices(WORDS, k=14)
            steps.append(f"{' '.join(words)}: {total} + {more} = {total + more + (dice.random() < 0.1)}.")
            total += more
        yield ScorerInput(f"Problem {number}: add up what is given, one by one.", steps)


def measure_scoring(n_steps: int) -> dict[str, float]:
    some = list(make_traces(200))
    wrong = np.random.default_rng(0).random(200 * STEPS_A_TRACE) < 0.2
    scorer = builtin.train_scorer(builtin.extract_features(some), wrong)
    before, cpu, done, seconds = _memory(), time.process_time(), 0, 0.0
    chunk: list[ScorerInput] = []
    for trace in make_traces(n_steps // STEPS_A_TRACE):
        chunk.append(trace)
        if len(chunk) == CHUNK:
            began = time.perf_counter()
            done += sum(len(each) for each in scorer.score(chunk))
            seconds += time.perf_counter() - began
            chunk = []
    return {
        "steps scored": done,
        "steps a second": done / seconds,
        "seconds": seconds,
        "processor seconds": time.process_time() - cpu,
        "memory, MB": _memory(),
        "of it for scoring, MB": _memory() - before,
    }


def measure_selection(n: int) -> dict[str, float]:
    """Measure unpacking the rows, and then scores, probabilities and the draw of a batch of 4,000."""
    from prm import scores  # models need the setup above
    from prm.batch_job import draw_with_acquisition
    from prm.drawable_pool import DrawablePool, uniform_walk_position
    from prm.models import LoopRules

    dice = np.random.default_rng(0)
    lengths = dice.integers(3, 13, n)
    texts = ["x" * 80] * 13
    kept = [scores.encode_scores(dice.beta(5, 1, length), texts[:length], [True] * int(length)) for length in lengths]
    began, cpu = time.perf_counter(), time.process_time()
    numbers, lengths = scores.decode_scores(kept)
    pool = Pool(
        lengths=lengths,
        hazards=1 - numbers[:, 0],
        words=numbers[:, 1].astype(np.int64) + 12,
        characters=numbers[:, 2].astype(np.int64),
        problems=dice.integers(0, n // 2, n),
        domains=dice.integers(0, 5, n),
        is_answer_wrong=(outcomes := dice.integers(0, 3, n)) == 0,
        is_answer_right=outcomes == 1,
    )
    places = np.array([uniform_walk_position(1, trace) for trace in range(n)])
    drawable = DrawablePool(np.arange(n), pool, places)
    rules = LoopRules(batch_size=4_000)
    found = draw_with_acquisition(
        drawable, ReadingRates(), acquisition=rules.acquisition, rules=rules, uniform_share=0.2, seed=1
    )
    return {
        "traces in the pool": n,
        "traces drawn": len(found),
        "selection, seconds": time.perf_counter() - began,
        "selection, processor seconds": time.process_time() - cpu,
    }


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
