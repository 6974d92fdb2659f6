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

from labeling.agreement.arrays import Bools, Floats, Ints
from prm.backends import features
from prm.backends.asked import Trace

NAME, VERSION = "builtin", 2
_PENALTY = 0.005  # inverse strength, as scikit-learn's C
_MOST_WEIGHT = 10.0  # of words, beside the features
# Several threads pay for no fit of this size, and on a busy machine each waits for the other (6 ms became 112).
_threads = ThreadpoolController()


class TooFewLabels(ValueError):
    """There is nothing to learn from: no wrong or no right step."""


@dataclass(frozen=True)
class Seen:
    """The steps of traces, laid end to end, as the scorer sees them."""

    numeric: Floats
    words: "scipy.sparse.csr_matrix"


@dataclass(frozen=True)
class Scorer:
    means: Floats
    spreads: Floats
    of_features: Floats
    of_words: Floats
    intercept: float

    def p_wrong(self, seen: Seen) -> Floats:
        scaled = (seen.numeric - self.means) / self.spreads
        logits = scaled @ self.of_features + seen.words @ self.of_words + self.intercept
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))))

    def score(self, traces: Sequence[Trace]) -> list[Floats]:
        """P(step right | all before right) of every step."""
        ends = np.cumsum([len(trace.steps) for trace in traces])
        return np.split(1.0 - self.p_wrong(see(traces)), ends[:-1]) if traces else []

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


def from_bytes(data: bytes) -> Scorer:
    with np.load(io.BytesIO(data), allow_pickle=False) as kept:
        if int(kept["version"][0]) != VERSION:
            raise ValueError(f"a builtin PRM of version {int(kept['version'][0])} cannot be read: train it anew")
        return Scorer(
            kept["means"], kept["spreads"], kept["of_features"], kept["of_words"], float(kept["intercept"][0])
        )


def see(traces: Sequence[Trace]) -> Seen:
    rows = [features.of_trace(trace.problem, trace.steps) for trace in traces]
    numeric = np.concatenate(rows) if rows else np.zeros((0, len(features.NAMES)))
    bags = [features.hashed_words(step) for trace in traces for step in trace.steps]
    ends = np.cumsum([0, *(len(buckets) for buckets, _ in bags)])
    buckets = np.concatenate([buckets for buckets, _ in bags]) if bags else np.zeros(0, dtype=np.int64)
    weights = np.concatenate([weights for _, weights in bags]) if bags else np.zeros(0)
    words = scipy.sparse.csr_matrix((weights, buckets, ends), shape=(len(bags), features.BUCKETS))
    return Seen(numeric, words)


def together(parts: Sequence[Seen]) -> Seen:
    """Several, one after the other."""
    words = scipy.sparse.csr_matrix(scipy.sparse.vstack([part.words for part in parts]))
    return Seen(np.concatenate([part.numeric for part in parts]), words)


def keep(seen: Seen, rows: Bools | Ints) -> Seen:
    """Some of the steps: the labelled ones, a part for training."""
    return Seen(seen.numeric[rows], seen.words[rows])


def train(seen: Seen, is_wrong: Bools) -> Scorer:
    """From labelled steps; equal input gives equal coefficients.

    Words weigh √(wrong steps), ten at most: nine errors tell nothing of sixteen thousand buckets, eight hundred do. The
    features bear a strong penalty from the start.
    """
    if is_wrong.all() or not is_wrong.any():
        raise TooFewLabels("training needs at least one wrong and one right step")
    means, spreads = seen.numeric.mean(axis=0), seen.numeric.std(axis=0)
    spreads = np.where(spreads > 1e-9, spreads, 1.0)
    scaled = scipy.sparse.csr_matrix((seen.numeric - means) / spreads)
    weight = min(_MOST_WEIGHT, math.sqrt(is_wrong.sum()))
    with _threads.limit(limits=1):
        fitted = LogisticRegression(C=_PENALTY, solver="newton-cg", max_iter=200).fit(
            scipy.sparse.hstack([scaled, seen.words * weight]), is_wrong
        )
    n = len(means)
    return Scorer(means, spreads, fitted.coef_[0, :n], fitted.coef_[0, n:] * weight, float(fitted.intercept_[0]))
