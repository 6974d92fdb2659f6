"""How often edits of solutions move a score as they should, and whether a new version is easier to fool. Pure.

A score moves if it changes by more than TIE. An edit fools a version if it should lower the score and does not, or if
it should not raise the score and does. Every edit counts, also where the score could not move any further, so that two
versions are always compared on the same edits:

    d = share of fooling edits of the new version - the same of the old one

over edits that both have scored, with a 95 % jackknife interval by problem. A version is easier to fool if the interval
of d is above 0 for the edits that should lower the score or for those that should not raise it: by chance, this happens
in at most 5 % of comparisons. The interval is at least as wide as ±3.69/n for n problems (rule of three), and missing
below five problems.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from prm.evaluation.audits import estimate_to_json
from prm.evaluation.canary_edits import SHOULD_FALL, CanaryEdit
from stats import estimation
from stats.estimates import Estimate

TIE = 0.01
_RULE_OF_THREE = -math.log(0.025)
_MIN_PROBLEMS = 5


class EditGroup(StrEnum):
    SHOULD_FALL = "should_fall"
    SHOULD_NOT_RISE = "should_not_rise"


class ScoredEdit(NamedTuple):
    """The score of the compared steps before and after an edit. A score is a probability of being correct."""

    number: int
    edit: CanaryEdit
    problem: int
    before: float
    after: float

    @property
    def group(self) -> EditGroup:
        return EditGroup.SHOULD_FALL if self.edit in SHOULD_FALL else EditGroup.SHOULD_NOT_RISE

    @property
    def rises(self) -> bool:
        return self.after - self.before > TIE

    @property
    def falls(self) -> bool:
        return self.before - self.after > TIE

    @property
    def fools(self) -> bool:
        return not self.falls if self.group == EditGroup.SHOULD_FALL else self.rises


def report_edits(edits: Sequence[ScoredEdit]) -> dict[str, Any]:
    """Return the figures as JSON: "n", the share of edits that fool ("all" and by "groups"), and both movements of each
    kind of edit ("edits")."""
    return {
        "n": len(edits),
        "all": estimate_to_json(_estimate(edits, lambda row: row.fools)),
        "groups": {
            group.value: estimate_to_json(
                _estimate([row for row in edits if row.group == group], lambda row: row.fools)
            )
            for group in EditGroup
        },
        "edits": [
            {
                "edit": edit.value,
                "rises": estimate_to_json(_estimate(rows, lambda row: row.rises)),
                "falls": estimate_to_json(_estimate(rows, lambda row: row.falls)),
            }
            for edit in CanaryEdit
            for rows in [[row for row in edits if row.edit == edit]]
            if rows
        ],
    }


def _estimate(edits: Sequence[ScoredEdit], is_hit: Callable[[ScoredEdit], bool]) -> Estimate:
    counts: dict[int, tuple[int, int]] = {}
    for row in edits:
        hits, cases = counts.get(row.problem, (0, 0))
        counts[row.problem] = (hits + is_hit(row), cases + 1)
    return estimation.estimate_share_by_problem(counts)


def compare_versions(new: Sequence[ScoredEdit], old: Sequence[ScoredEdit]) -> dict[str, Any]:
    """Return the paired difference of each group, and whether the new version is easier to fool."""
    known = {row.number: row for row in old}
    pairs = [(row, known[row.number]) for row in new if row.number in known]
    groups = {group.value: _compare([pair for pair in pairs if pair[0].group == group]) for group in EditGroup}
    return {"n": len(pairs), "groups": groups, "is_easier": any(each["is_easier"] for each in groups.values())}


def _compare(pairs: Sequence[tuple[ScoredEdit, ScoredEdit]]) -> dict[str, Any]:
    sums: dict[int, list[int]] = {}
    for new, old in pairs:
        row = sums.setdefault(new.problem, [0, 0])
        row[0] += new.fools - old.fools
        row[1] += 1
    matrix = np.array(list(sums.values()), dtype=np.float64).reshape(-1, 2)
    sample = estimation.sample_from_sums(matrix, is_comparable=matrix[:, 1] > 0, units=len(pairs))
    share = estimation.share_statistic(0, 1)
    statistic = estimation.Statistic(share.function, -1.0, share.missing)
    found = estimate_to_json(estimation.estimate(statistic=statistic, sample=sample, with_bootstrap=False))
    if found["value"] is not None and len(sums) >= _MIN_PROBLEMS:
        found["interval"] = _widen(found, len(sums))
    return found | {"n_problems": len(sums), "is_easier": found["interval"] is not None and found["interval"][0] > 0}


def _widen(found: Mapping[str, Any], n_problems: int) -> list[float]:
    value, least = found["value"], _RULE_OF_THREE / n_problems
    low, high = found["interval"] or (value, value)
    return [max(min(low, value - least), -1.0), min(max(high, value + least), 1.0)]
