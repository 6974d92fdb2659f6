"""The traces that can be drawn, where their first errors probably are, and how much is gained by labeling a trace.

    S_i = Π_{j ≤ i} (1 - h_j),   P(E = i) = S_{i-1} h_i,   P(none) = S_T

h_i is the hazard of step i, E the position of the first error, S_i the probability that steps 1 to i are all right.
Discrete-time survival: D. R. Cox (1972), doi:10.1111/j.2517-6161.1972.tb00899.x.

Acquisition functions give scores above zero; a trace with a higher one is labeled sooner:

    outcome_aware                the default: traces with a wrong answer first, convincing ones before others; H(E)
                                 among the rest
    entropy                      H(E) = Σ_i S_{i-1} H_b(h_i)
    entropy_per_root_cost        H(E)/√C
    root_variance_per_root_cost  Σ_i S_{i-1} √(h_i (1 - h_i)) / √C
    max_step_entropy             max_i H_b(h_i)
    margin                       1 - (p₁ - p₂), the two most probable positions of the first error, "none" included
    convincing_wrong_answer      P(none) if the answer is known to be wrong, else almost zero
    longest                      mean log characters of a step: uses no PRM, but is a strong baseline
    disagreement                 share of pairs of machine raters that name different first errors; almost zero with
                                 fewer than two of them
    random                       1

H_b is the binary entropy. A project can name its own function as
"package.module:function".

The default is more than a score. Traces with a known outcome and the others are two strata, and the policy draws from
each in proportion to its size (`outcome_strata`): known wrong answers must not keep it from traces without an outcome.
Half of its draws are spread out in feature space (`spread_features`). `prm.selection.draws` uses both.

C is the expected cost of labeling a trace, in seconds. Raters stop at the first error, so later steps cost less:

    C = c₀ + Σ_i S_{i-1} c_i,   c_i = seconds per step + seconds per word · words

The default rates are starting values. They are fitted to measured active time by least squares, never below zero,
because people and projects differ. The slowest 5 % relative to the first fit (interruptions) are dropped before the
second one.

H. Lightman et al. (2023), arXiv:2305.20050 (convincing wrong answers); B. Settles (2009), "Active learning literature
survey" (entropy, margin; cost: section 6.1).
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints

MIN_TIMED_READINGS = 100
_FITTED_QUANTILE = 0.95
_MIN_SECONDS = 1.0
_MIN_SCORE = 1e-9
_REST_SHARE = 0.1  # of the score of a wrong answer: at the default temperature, all wrong answers are drawn first
_MAX_DEVIATION = 3.0  # of a feature, in standard deviations
DEFAULT = "outcome_aware"
_CERTAIN = 1 - 1e-9


@dataclass(frozen=True)
class Pool:
    """The steps of all traces end to end, with one entry per step or per trace in each column.

    Per step: P(wrong | all before right), words, characters. Per trace: length, problem, domain, outcome. Without a
    known outcome, `is_answer_right` and `is_answer_wrong` are both false. Problems and domains are numbered from 0.
    """

    lengths: Ints
    hazards: Floats
    words: Ints
    characters: Ints
    problems: Ints
    domains: Ints
    is_answer_wrong: Bools
    is_answer_right: Bools
    disagreement: Floats | None = None  # of machine raters, per trace; only loaded for its acquisition

    def __post_init__(self) -> None:
        steps = {len(self.hazards), len(self.words), len(self.characters)}
        outcomes = {len(self.is_answer_wrong), len(self.is_answer_right)}
        traces = {len(self.lengths), len(self.problems), len(self.domains), *outcomes}
        traces |= set() if self.disagreement is None else {len(self.disagreement)}
        if len(steps) != 1 or len(traces) != 1 or self.lengths.sum() != len(self.hazards):
            raise ValueError("every step needs a hazard and a size, every trace a length, a problem and a domain")
        if len(self.lengths) and self.lengths.min() < 1:
            raise ValueError("every trace in the pool needs at least one step")
        if len(self.hazards) and not (self.hazards.min() >= 0 and self.hazards.max() <= 1):
            raise ValueError("hazards must be probabilities: recalibrate the PRM")

    @property
    def n(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> Ints:
        return np.asarray(np.cumsum(self.lengths) - self.lengths, dtype=np.int64)

    @property
    def traces(self) -> Ints:
        """The trace of every step."""
        return np.repeat(np.arange(self.n), self.lengths)

    def sum_per_trace(self, values: Floats) -> Floats:
        """Add up the values of each trace's steps."""
        return np.bincount(self.traces, weights=values, minlength=self.n).astype(np.float64)


@dataclass(frozen=True)
class ReadingRates:
    """Seconds to open a trace, per step and per word."""

    opening: float = 8.0
    step: float = 2.0
    word: float = 0.25


Acquisition = Callable[[Pool, ReadingRates], Floats]


class UnknownAcquisition(ValueError):
    """The name is neither a built-in acquisition function nor an importable one."""


class InvalidAcquisitionScores(ValueError):
    """A custom acquisition function did not return one finite number per trace."""


def find_acquisition(name: str) -> Acquisition:
    """Return a built-in acquisition function, or import the one that "package.module:function" names."""
    if name in ACQUISITIONS:
        return ACQUISITIONS[name]
    module, _, attribute = name.partition(":")
    try:
        function: Acquisition = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        names = ", ".join(sorted(ACQUISITIONS))
        raise UnknownAcquisition(f"No acquisition {name!r}. Use {names} or package.module:function.") from None
    return function


def acquisition_scores(name: str, pool: Pool, reading: ReadingRates) -> Floats:
    """Return a finite score above zero for every trace."""
    scores = np.asarray(find_acquisition(name)(pool, reading), dtype=np.float64)
    if scores.shape != (pool.n,) or not np.isfinite(scores).all():
        raise InvalidAcquisitionScores(f"{name} must return {pool.n} finite scores, one per trace")
    return np.maximum(scores, _MIN_SCORE)


def outcome_aware(pool: Pool, reading: ReadingRates) -> Floats:
    unsure = first_error_entropy(pool)
    rest = _REST_SHARE * unsure / max(float(unsure.max(initial=0.0)), _MIN_SCORE)
    return np.where(pool.is_answer_wrong, 1.0 + no_error_probabilities(pool), rest)


def entropy(pool: Pool, reading: ReadingRates) -> Floats:
    return first_error_entropy(pool)


def entropy_per_root_cost(pool: Pool, reading: ReadingRates) -> Floats:
    return np.asarray(first_error_entropy(pool) / np.sqrt(expected_seconds(pool, reading)))


def root_variance_per_root_cost(pool: Pool, reading: ReadingRates) -> Floats:
    spread = still_right_before(pool) * np.sqrt(pool.hazards * (1 - pool.hazards))
    return np.asarray(pool.sum_per_trace(spread) / np.sqrt(expected_seconds(pool, reading)))


def max_step_entropy(pool: Pool, reading: ReadingRates) -> Floats:
    return np.maximum.reduceat(step_entropy(pool.hazards), pool.starts) if pool.n else np.zeros(0)


def margin(pool: Pool, reading: ReadingRates) -> Floats:
    places = first_error_probabilities(pool)
    first = np.maximum.reduceat(places, pool.starts) if pool.n else np.zeros(0)
    candidates = np.flatnonzero(places >= first[pool.traces])
    _, one_per_trace = np.unique(pool.traces[candidates], return_index=True)
    others = places.copy()
    others[candidates[one_per_trace]] = 0.0
    second = np.maximum.reduceat(others, pool.starts) if pool.n else np.zeros(0)
    ranked = np.sort(np.column_stack([first, second, no_error_probabilities(pool)]), axis=1)
    return np.asarray(1.0 - (ranked[:, 2] - ranked[:, 1]))


def convincing_wrong_answer(pool: Pool, reading: ReadingRates) -> Floats:
    return np.where(pool.is_answer_wrong, no_error_probabilities(pool), 0.0)


def longest(pool: Pool, reading: ReadingRates) -> Floats:
    return np.asarray(pool.sum_per_trace(np.log1p(pool.characters)) / pool.lengths)


def disagreement(pool: Pool, reading: ReadingRates) -> Floats:
    return np.zeros(pool.n) if pool.disagreement is None else pool.disagreement


def random(pool: Pool, reading: ReadingRates) -> Floats:
    return np.ones(pool.n)


def first_error_entropy(pool: Pool) -> Floats:
    """H(E) in nats by the chain rule: the entropy of each step, weighted by the probability of reaching it."""
    return pool.sum_per_trace(still_right_before(pool) * step_entropy(pool.hazards))


def step_entropy(hazards: Floats) -> Floats:
    h = np.clip(hazards, 1e-12, 1 - 1e-12)
    return np.asarray(-h * np.log(h) - (1 - h) * np.log1p(-h))


ACQUISITIONS: dict[str, Acquisition] = {
    function.__name__: function
    for function in (
        outcome_aware,
        entropy,
        entropy_per_root_cost,
        root_variance_per_root_cost,
        max_step_entropy,
        margin,
        convincing_wrong_answer,
        longest,
        disagreement,
        random,
    )
}


def outcome_strata(pool: Pool) -> Ints:
    """Return 1 for each trace with a known outcome, 0 for the others."""
    return (pool.is_answer_wrong | pool.is_answer_right).astype(np.int64)


def spread_features(pool: Pool) -> Floats:
    """Return a standardized point in feature space for each trace, from the scores and the sizes of its steps."""
    errors, lengths = first_error_probabilities(pool), pool.lengths.astype(np.float64)
    position = (np.arange(len(pool.hazards)) - np.repeat(pool.starts, pool.lengths)) / np.repeat(lengths, pool.lengths)
    columns = (
        np.log(lengths),
        pool.sum_per_trace(np.log1p(pool.characters)) / lengths,
        np.log1p(pool.sum_per_trace(pool.characters.astype(np.float64)))
        - np.log1p(pool.sum_per_trace(pool.words.astype(np.float64))),
        np.maximum.reduceat(pool.hazards, pool.starts),
        no_error_probabilities(pool),
        pool.sum_per_trace(errors * position) / np.maximum(pool.sum_per_trace(errors), _MIN_SCORE),
    )
    features = np.column_stack(columns)
    spreads = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spreads > _MIN_SCORE, spreads, 1.0)
    return np.asarray(np.clip(scaled, -_MAX_DEVIATION, _MAX_DEVIATION), dtype=np.float64)


# --- first errors -----------------------------------------------------------------------------------------------------


def still_right_before(pool: Pool) -> Floats:
    """S_{i-1} of every step."""
    passed = np.log1p(-np.minimum(pool.hazards, _CERTAIN))
    before = np.cumsum(passed) - passed
    return np.exp(np.minimum(before - before[pool.starts][pool.traces], 0.0)) if pool.n else passed


def first_error_probabilities(pool: Pool) -> Floats:
    """P(E = i) of every step."""
    return still_right_before(pool) * pool.hazards


def no_error_probabilities(pool: Pool) -> Floats:
    """P(none) of every trace, computed as the remainder so that the probabilities of a trace add up to 1."""
    return np.clip(1.0 - pool.sum_per_trace(first_error_probabilities(pool)), 0.0, 1.0)


# --- cost -------------------------------------------------------------------------------------------------------------


def expected_seconds(pool: Pool, reading: ReadingRates) -> Floats:
    step_seconds = reading.step + reading.word * pool.words
    seconds = reading.opening + pool.sum_per_trace(still_right_before(pool) * step_seconds)
    return np.maximum(seconds, _MIN_SECONDS)


def fit_reading_rates(*, seconds: Floats, steps_read: Ints, words_read: Ints) -> ReadingRates:
    """Fit the rates to the active time of submissions."""
    design = np.column_stack([np.ones(len(seconds)), steps_read, words_read]).astype(np.float64)
    residuals = seconds - design @ _fit_nonnegative(design, seconds)
    is_usual = residuals <= np.quantile(residuals, _FITTED_QUANTILE) if len(residuals) else residuals > 0
    return ReadingRates(*_fit_nonnegative(design[is_usual], seconds[is_usual]).tolist())


def _fit_nonnegative(design: Floats, seconds: Floats) -> Floats:
    """Fit the rates. Set rates that would be negative to zero, and fit the others again."""
    rates, is_free = np.zeros(3), np.ones(3, dtype=np.bool_)
    while is_free.any():
        solution = np.linalg.lstsq(design[:, is_free], seconds, rcond=None)[0]
        if (solution >= 0).all():
            rates[is_free] = solution
            break
        is_free[np.flatnonzero(is_free)[solution < 0]] = False
    return rates
