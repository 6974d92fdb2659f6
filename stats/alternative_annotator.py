"""Decide whether a machine may stand in for a person: the alternative annotator test.

Each person is left out in turn, and the others are the reference. On each item, the machine *wins* if it agrees with at
least as many of the others as the person who is left out, and the person wins likewise; in a tie both win.

    d_ij = [person j wins item i] - [machine wins item i]
    H0: mean d_j ≥ ε, tested one-sided by Student's t for each person j, with the Benjamini-Yekutieli bound on the false
        discovery rate, which holds under any dependence of the tests
    ω    share of people for whom H0 is rejected; the machine passes from ω ≥ .5 on
    ρ    mean over people of the share of items that the machine wins: compares machines

ε is the lead that a person keeps because they cost more: the authors suggest .2 for experts, .15 for skilled people, .1
for crowd workers. At least three people are needed, with 30 items each. If a problem has several items, the variance is
that of its sums, with one degree of freedom per problem; with one item per problem this is the published test.

N. Calderon, R. Reichart, R. Dror (2025), "The alternative annotator test for LLM-as-a-judge", arXiv:2501.10970;
Y. Benjamini, D. Yekutieli (2001), doi:10.1214/aos/1013699998.
"""

import math
from dataclasses import dataclass

import numpy as np

from stats.arrays import Bools, Floats, Ints
from stats.estimates import Interval, Reason
from stats.intervals import t_probability, t_quantile

MIN_ITEMS, MIN_PEOPLE = 30, 3
FALSE_DISCOVERIES = 0.05
PASSING_SHARE = 0.5
EPSILONS = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}


@dataclass(frozen=True)
class ItemAnswers:
    """One row per answer of a person: its item, person and value. `machine` and `problems` are per item."""

    items: Ints
    people: Ints
    answers: Ints
    machine: Ints
    problems: Ints


@dataclass(frozen=True)
class PersonComparison:
    """The test against one person. `advantage` is the share of items that the machine wins."""

    person: int
    n_items: int
    advantage: float
    lead: float  # mean d: how much more often the person wins
    p: float
    is_rejected: bool


@dataclass(frozen=True)
class AlternativeAnnotatorTest:
    """`winning_rate` is ω, `advantage` ρ with its interval by problem; without them, `reason` says why."""

    epsilon: float
    people: tuple[PersonComparison, ...]
    winning_rate: float | None
    advantage: float | None
    interval: Interval | None
    reason: Reason | None = None

    @property
    def is_passed(self) -> bool:
        return self.winning_rate is not None and self.winning_rate >= PASSING_SHARE


def compare_with_people(
    data: ItemAnswers,
    *,
    epsilon: float,
    false_discoveries: float = FALSE_DISCOVERIES,
    min_items: int = MIN_ITEMS,
    level: float = 0.95,
) -> AlternativeAnnotatorTest:
    machine_wins, person_wins, is_usable = _find_wins(data)
    n_items = np.bincount(data.people[is_usable])
    tested = [int(person) for person in np.flatnonzero(n_items >= min_items)]
    if len(tested) < MIN_PEOPLE:
        return AlternativeAnnotatorTest(epsilon, (), None, None, None, Reason.FEW_PEOPLE)
    rows = [np.flatnonzero(is_usable & (data.people == person)) for person in tested]
    problems = data.problems[data.items]
    leads = [person_wins[own].astype(float) - machine_wins[own] for own in rows]
    p_values = [_test_below(lead, problems[own], epsilon) for lead, own in zip(leads, rows, strict=True)]
    is_rejected = reject_hypotheses(np.array(p_values), false_discoveries)
    people = tuple(
        PersonComparison(
            person, len(own), float(machine_wins[own].mean()), float(lead.mean()), p, bool(is_rejected[index])
        )
        for index, (person, own, lead, p) in enumerate(zip(tested, rows, leads, p_values, strict=True))
    )
    advantage = float(np.mean([each.advantage for each in people]))
    interval = _advantage_interval(rows, machine_wins, problems, advantage, level)
    return AlternativeAnnotatorTest(epsilon, people, float(is_rejected.mean()), advantage, interval)


def _find_wins(data: ItemAnswers) -> tuple[Bools, Bools, Bools]:
    """Return per answer whether the machine and its person win, and whether somebody else answered the item."""
    others = np.bincount(data.items, minlength=len(data.machine))[data.items] - 1
    _, key = np.unique(np.column_stack([data.items, data.answers]), axis=0, return_inverse=True)
    same_as_person = np.bincount(key.ravel())[key.ravel()] - 1
    is_machine = data.answers == data.machine[data.items]
    same_as_machine = np.bincount(data.items, weights=is_machine, minlength=len(data.machine))[data.items] - is_machine
    return same_as_machine >= same_as_person, same_as_person >= same_as_machine, others >= 1


def _test_below(values: Floats, problems: Ints, bound: float) -> float:
    """Return the one-sided p of the hypothesis that the mean is at least `bound`."""
    mean = float(values.mean())
    _, group = np.unique(problems, return_inverse=True)
    sums = np.bincount(group, weights=values - mean)
    n_groups = len(sums)
    if n_groups < 2:
        return 1.0
    spread = math.sqrt(n_groups / (n_groups - 1) * float((sums**2).sum())) / len(values)
    if spread == 0:
        return 0.0 if mean < bound else 1.0
    return t_probability(value=(mean - bound) / spread, df=n_groups - 1)


def reject_hypotheses(p_values: Floats, false_discoveries: float) -> Bools:
    """Return which hypotheses are rejected at this false discovery rate, whatever their dependence."""
    m = len(p_values)
    ranks = np.arange(1, m + 1)
    order = np.argsort(p_values, kind="stable")
    passes = p_values[order] <= ranks / m * false_discoveries / (1 / ranks).sum()
    n_rejected = int(ranks[passes].max(initial=0))
    is_rejected = np.zeros(m, dtype=np.bool_)
    is_rejected[order[:n_rejected]] = True
    return is_rejected


def _advantage_interval(
    rows: list[Ints], machine_wins: Bools, problems: Ints, advantage: float, level: float
) -> Interval | None:
    """Return the interval of the mean of the people's shares, from sums by problem."""
    answers = np.concatenate(rows)
    weight = np.concatenate([np.full(len(own), 1 / len(own) / len(rows)) for own in rows])
    person_mean = np.concatenate([np.full(len(own), machine_wins[own].mean()) for own in rows])
    _, group = np.unique(problems[answers], return_inverse=True)
    sums = np.bincount(group, weights=weight * (machine_wins[answers] - person_mean))
    g = len(sums)
    if g < 2:
        return None
    half = t_quantile(p=(1 + level) / 2, df=g - 1) * math.sqrt(g / (g - 1) * float((sums**2).sum()))
    low, high = max(advantage - half, 0.0), min(advantage + half, 1.0)
    return Interval(low, high, level, "sandwich-t by problem")
