"""The builtin scorer: logistic regression on features of a step and its prefix. A baseline, not a measure of quality.

It needs no download, so that a project can run generations from the first day. Its score is a hazard: P(step right |
all before right). scikit-learn is imported here and nowhere else.

A trained scorer is stored as arrays of coefficients (`to_bytes`): nothing is unpickled.
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
_PENALTY = 0.005  # inverse strength, like scikit-learn's C
_MAX_WORD_WEIGHT = 10.0  # relative to the features
# Threads do not speed up fits of this size, and on a busy machine they wait for each other (6 ms became 112).
_threads = ThreadpoolController()


class TooFewLabels(ValueError):
    """Training needs at least one wrong and one right step."""


class UnsupportedVersion(ValueError):
    """The stored weights have another format."""


@dataclass(frozen=True)
class StepFeatures:
    """The scorer's features of steps, one row per step."""

    numeric: Floats
    words: "scipy.sparse.csr_matrix"


@dataclass(frozen=True)
class BuiltinScorer:
    means: Floats
    spreads: Floats
    feature_weights: Floats
    word_weights: Floats
    intercept: float

    def p_wrong(self, steps: StepFeatures) -> Floats:
        scaled = (steps.numeric - self.means) / self.spreads
        logits = scaled @ self.feature_weights + steps.words @ self.word_weights + self.intercept
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))))

    def score(self, traces: Sequence[ScorerInput]) -> list[Floats]:
        """Return P(step right | all before right) of every step."""
        ends = np.cumsum([len(trace.steps) for trace in traces])
        return np.split(1.0 - self.p_wrong(extract_features(traces)), ends[:-1]) if traces else []

    def to_bytes(self) -> bytes:
        file = io.BytesIO()
        np.savez_compressed(
            file,
            version=np.array([VERSION]),
            means=self.means,
            spreads=self.spreads,
            of_features=self.feature_weights,
            of_words=self.word_weights,
            intercept=np.array([self.intercept]),
        )
        return file.getvalue()


def load_scorer(data: bytes) -> BuiltinScorer:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        if int(arrays["version"][0]) != VERSION:
            raise UnsupportedVersion(
                f"The builtin PRM was trained with format {int(arrays['version'][0])}; this release reads {VERSION}."
                " Start a generation to train a new one."
            )
        return BuiltinScorer(
            arrays["means"],
            arrays["spreads"],
            arrays["of_features"],
            arrays["of_words"],
            float(arrays["intercept"][0]),
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
    words = scipy.sparse.csr_matrix(scipy.sparse.vstack([part.words for part in parts]))
    return StepFeatures(np.concatenate([part.numeric for part in parts]), words)


def take_steps(steps: StepFeatures, rows: Bools | Ints) -> StepFeatures:
    return StepFeatures(steps.numeric[rows], steps.words[rows])


def train_scorer(steps: StepFeatures, is_wrong: Bools) -> BuiltinScorer:
    """Train on labeled steps; equal input gives equal coefficients.

    Words are weighted by √(wrong steps), at most ten: nine errors are too few for sixteen thousand word buckets, eight
    hundred are enough. The features always have a strong penalty.
    """
    if is_wrong.all() or not is_wrong.any():
        raise TooFewLabels(
            f"{int(is_wrong.sum())} wrong and {int((~is_wrong).sum())} right steps; both kinds are needed"
        )
    means, spreads = steps.numeric.mean(axis=0), steps.numeric.std(axis=0)
    spreads = np.where(spreads > 1e-9, spreads, 1.0)
    scaled = scipy.sparse.csr_matrix((steps.numeric - means) / spreads)
    weight = min(_MAX_WORD_WEIGHT, math.sqrt(is_wrong.sum()))
    with _threads.limit(limits=1):
        fitted = LogisticRegression(C=_PENALTY, solver="newton-cg", max_iter=200).fit(
            scipy.sparse.hstack([scaled, steps.words * weight]), is_wrong
        )
    n = len(means)
    return BuiltinScorer(means, spreads, fitted.coef_[0, :n], fitted.coef_[0, n:] * weight, float(fitted.intercept_[0]))
