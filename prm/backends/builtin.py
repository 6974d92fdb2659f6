"""The baseline scorer: logistic regression on what can be seen in a step and its prefix. Not a measure of quality.

It works with no download, so that the loop of labels, training, scores and draws runs from the first day. Its number is
a hazard: P(step right | all before right). scikit-learn is imported here and nowhere else.

A trained scorer is an array of coefficients and is kept as one (`to_bytes`): nothing is unpickled.
"""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

from prm.backends import features
from prm.backends.base import ScorerInput
from stats.arrays import Bools, Floats, Ints

NAME, VERSION = "builtin", 2
_PENALTY = 0.005  # inverse strength, as scikit-learn's C
_MAX_WEIGHT = 10.0  # of words, beside the features
# Several threads pay for no fit of this size, and on a busy machine each waits for the other (6 ms became 112).
_threads = ThreadpoolController()


class TooFewLabels(ValueError):
    """There is nothing to learn from: no wrong or no right step."""


@dataclass(frozen=True)
class StepFeatures:
    """The steps of traces, laid end to end, as the scorer sees them."""

    numeric: Floats
    words: "scipy.sparse.csr_matrix"


@dataclass(frozen=True)
class BuiltinScorer:
    means: Floats
    spreads: Floats
    of_features: Floats
    of_words: Floats
    intercept: float

    def p_wrong(self, seen: StepFeatures) -> Floats:
        scaled = (seen.numeric - self.means) / self.spreads
        logits = scaled @ self.of_features + seen.words @ self.of_words + self.intercept
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))))

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        """P(step right | all before right) of every step."""
        ends = np.cumsum([len(trace.steps) for trace in traces])
        return np.split(1.0 - self.p_wrong(extract_features(traces)), ends[:-1]) if traces else []

    def to_bytes(self) -> bytes:
        file = io.BytesIO()
        np.savez_compressed(
            file,
            version=np.array([VERSION]),
            means=self.means,
            spreads=self.spreads,
            of_features=self.of_features,
            of_words=self.of_words,
            intercept=np.array([self.intercept]),
        )
        return file.getvalue()


def load_scorer(data: bytes) -> BuiltinScorer:
    with np.load(io.BytesIO(data), allow_pickle=False) as kept:
        if int(kept["version"][0]) != VERSION:
            raise ValueError(f"a builtin PRM of version {int(kept['version'][0])} cannot be read: train it anew")
        return BuiltinScorer(
            kept["means"], kept["spreads"], kept["of_features"], kept["of_words"], float(kept["intercept"][0])
        )


def extract_features(traces: Sequence[ScorerInput]) -> StepFeatures:
    rows = [features.compute_features(trace.problem, trace.steps) for trace in traces]
    numeric = np.concatenate(rows) if rows else np.zeros((0, len(features.FEATURE_NAMES)))
    bags = [features.hashed_words(step) for trace in traces for step in trace.steps]
    ends = np.cumsum([0, *(len(buckets) for buckets, _ in bags)])
    buckets = np.concatenate([buckets for buckets, _ in bags]) if bags else np.zeros(0, dtype=np.int64)
    weights = np.concatenate([weights for _, weights in bags]) if bags else np.zeros(0)
    words = scipy.sparse.csr_matrix((weights, buckets, ends), shape=(len(bags), features.WORD_BUCKETS))
    return StepFeatures(numeric, words)


def concatenate_features(parts: Sequence[StepFeatures]) -> StepFeatures:
    """Several, one after the other."""
    words = scipy.sparse.csr_matrix(scipy.sparse.vstack([part.words for part in parts]))
    return StepFeatures(np.concatenate([part.numeric for part in parts]), words)


def take_steps(seen: StepFeatures, rows: Bools | Ints) -> StepFeatures:
    """Some of the steps: the labelled ones, a part for training."""
    return StepFeatures(seen.numeric[rows], seen.words[rows])


def train_scorer(seen: StepFeatures, is_wrong: Bools) -> BuiltinScorer:
    """From labelled steps; equal input gives equal coefficients.

    Words weigh √(wrong steps), ten at most: nine errors tell nothing of sixteen thousand buckets, eight hundred do. The
    features bear a strong penalty from the start.
    """
    if is_wrong.all() or not is_wrong.any():
        raise TooFewLabels("training needs at least one wrong and one right step")
    means, spreads = seen.numeric.mean(axis=0), seen.numeric.std(axis=0)
    spreads = np.where(spreads > 1e-9, spreads, 1.0)
    scaled = scipy.sparse.csr_matrix((seen.numeric - means) / spreads)
    weight = min(_MAX_WEIGHT, math.sqrt(is_wrong.sum()))
    with _threads.limit(limits=1):
        fitted = LogisticRegression(C=_PENALTY, solver="newton-cg", max_iter=200).fit(
            scipy.sparse.hstack([scaled, seen.words * weight]), is_wrong
        )
    n = len(means)
    return BuiltinScorer(means, spreads, fitted.coef_[0, :n], fitted.coef_[0, n:] * weight, float(fitted.intercept_[0]))
