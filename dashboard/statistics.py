"""Statistics in words: what each is, what is good, why one has no value. Reads nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from charts import number_format
from stats.estimates import Reason

LazyText = str | Promise


@dataclass(frozen=True)
class StatisticKind:
    """A statistic: its name, the line that says what it is and what is good, and the mark that it should reach."""

    name: LazyText
    what: LazyText
    mark: float | None = None


STATISTIC_KINDS: dict[str, StatisticKind] = {
    "exact": StatisticKind(
        _("First error, exact position"), _("Same first error, or both none. What a PRM learns from most. .70 is good.")
    ),
    "within_one": StatisticKind(
        _("First error, within one step"), _("Forgives a boundary drawn one step apart. .80 is good.")
    ),
    "has_error_kappa": StatisticKind(
        _("Has an error, kappa"), _("Whether the trace is wrong at all, chance removed. .60 is good, 0 is chance.")
    ),
    "alpha_nominal": StatisticKind(
        _("Alpha nominal"),
        _("Step ratings, chance removed: 1 is perfect, 0 is chance. Usable from .67, firm from .80."),
        0.67,
    ),
    "alpha_ordinal": StatisticKind(
        _("Alpha ordinal"), _("Negative against positive weighs more than a neighbour. Usable from .67."), 0.67
    ),
    "alpha_interval": StatisticKind(_("Alpha interval"), _("As ordinal, with equal distances. Usable from .67."), 0.67),
    "gwet_ac1": StatisticKind(
        _("Gwet’s AC1"), _("Less troubled when most steps are positive; reads high, so never alone. .80 is good.")
    ),
    "gwet_ac2_quadratic": StatisticKind(
        _("Gwet’s AC2, quadratic"), _("AC1 with distances between ratings. .80 is good.")
    ),
    "fleiss_kappa": StatisticKind(
        _("Fleiss’ kappa"), _("For comparison with papers; alpha corrects its bias at few ratings. Usable from .60.")
    ),
    "recall -1": StatisticKind(
        _("Recall of negative"), _("Of steps settled negative, the share rated so: 1 less over-credit. .90 is good.")
    ),
    "recall 0": StatisticKind(
        _("Recall of neutral"),
        _("Of steps settled neutral, the share rated so. Far below the others: the guideline leaves neutral open."),
    ),
    "recall 1": StatisticKind(
        _("Recall of positive"), _("Of steps settled positive, the share rated so. .90 is good.")
    ),
    "over_credit": StatisticKind(
        _("Over-credit"), _("Of steps settled negative, the share rated better. The costly error; good is below .10.")
    ),
    "over_blame": StatisticKind(
        _("Over-blame"), _("Of steps not settled negative, the share rated negative. Good is below .10.")
    ),
    "pairwise_agreement": StatisticKind(
        _("Raw agreement"), _("Share of equal pairs. Flatters when one rating is common: .90 can be chance.")
    ),
}

_REASON_TEXTS: dict[str, LazyText] = {
    Reason.NO_PAIRS: _("Undefined: nothing was read twice yet."),
    Reason.NO_VARIATION: _("Undefined: every rating is the same, so chance alone would agree too."),
    Reason.NOT_NUMBERS: _("Undefined: the ratings are no numbers."),
    Reason.NO_ORDER: _("Undefined: the ratings have no order."),
    Reason.NO_CASES: _("Undefined: there is no case of this kind."),
    Reason.FEW_PROBLEMS: _("No interval: fewer than 5 problems."),
    Reason.FEW_FOR_BOOTSTRAP: _("No interval: fewer than 30 problems."),
    Reason.RESTS_ON_ONE: _("No interval: it rests on a single problem."),
    Reason.NO_SPREAD: _("No interval: all problems give the same value."),
    Reason.UNDEFINED: _("Undefined."),
    Reason.DRAWS_UNDEFINED: _("No interval: in some of the resamples it is undefined."),
    Reason.NOT_DRAWN: _("No bootstrap is drawn for it."),
    Reason.FEW_GOLD: _("Too few gold traces yet."),
    Reason.BELOW_PROMISE: _("None: on hidden gold no threshold keeps .90."),
    Reason.FEW_RATERS: _("Fewer than 5 screened raters."),
}


def explain_missing_value(reason: str | None) -> str:
    return str(_REASON_TEXTS.get(reason or "", reason or ""))


@dataclass(frozen=True)
class StatisticEstimate(number_format.ValueWithInterval):
    """One statistic as a page shows it: never the value alone."""

    key: str
    kind: StatisticKind
    n: int
    n_problems: int
    why: str  # there is no value, or no interval
    bootstrap: number_format.ValueWithInterval
    why_no_bootstrap: str

    @property
    def is_low(self) -> bool:
        return self.kind.mark is not None and self.value is not None and self.value < self.kind.mark


NO_ESTIMATE: Mapping[str, Any] = {"reason": Reason.NO_PAIRS}


def build_estimate(key: str, told: Mapping[str, Any] | None) -> StatisticEstimate:
    """Of an estimate as it is kept among the figures of a project."""
    told = told or NO_ESTIMATE
    return StatisticEstimate(
        key=key,
        kind=STATISTIC_KINDS[key],
        value=told.get("value"),
        low=told.get("low"),
        high=told.get("high"),
        n=told.get("n_paired") or 0,
        n_problems=told.get("n_problems") or 0,
        why=explain_missing_value(
            told.get("reason") or (told.get("interval_reason") if told.get("low") is None else None)
        ),
        bootstrap=number_format.ValueWithInterval(told.get("value"), *(told.get("bootstrap") or (None, None))),
        why_no_bootstrap=explain_missing_value(told.get("bootstrap_reason")),
    )
