"""Texts about statistics: their meaning, their target, and the reason for a missing value. Also their columns in
tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from charts import number_format
from dashboard.figures import TableColumn, number_columns
from stats.estimates import Reason

LazyText = str | Promise


@dataclass(frozen=True)
class StatisticKind:
    """A statistic: its name, what it means, and the value that it should reach."""

    name: LazyText
    what: LazyText
    mark: float | None = None


STATISTIC_KINDS: dict[str, StatisticKind] = {
    "exact": StatisticKind(
        _("First error, same step"),
        _(
            "Share of pairs that agree on the first error or agree that there is none. The most important"
            " figure for a PRM. 0.70 or higher is good."
        ),
    ),
    "within_one": StatisticKind(
        _("First error, within one step"),
        _("Also counts first errors one step apart as agreement. 0.80 or higher is good."),
    ),
    "has_error_kappa": StatisticKind(
        _("Any error, kappa"),
        _("Agreement on whether the trace has an error, corrected for chance. 0.60 or higher is good."),
    ),
    "alpha_nominal": StatisticKind(
        _("Alpha, nominal"),
        _("Agreement on step ratings, corrected for chance. Usable at 0.67 or above, reliable at 0.80 or above."),
        0.67,
    ),
    "alpha_ordinal": StatisticKind(
        _("Alpha, ordinal"),
        _(
            "Like nominal alpha, but negative versus positive counts as a larger disagreement than negative"
            " versus neutral. Usable at 0.67 or above."
        ),
        0.67,
    ),
    "alpha_interval": StatisticKind(
        _("Alpha, interval"),
        _("Like ordinal alpha, but with equal distances between ratings. Usable at 0.67 or above."),
        0.67,
    ),
    "gwet_ac1": StatisticKind(
        _("Gwet’s AC1"),
        _("More stable than alpha when most steps are positive, but tends to be high. 0.80 or higher is good."),
    ),
    "gwet_ac2_quadratic": StatisticKind(
        _("Gwet’s AC2, quadratic"),
        _("Like AC1, but larger differences between ratings count more. 0.80 or higher is good."),
    ),
    "fleiss_kappa": StatisticKind(
        _("Fleiss’ kappa"),
        _("For comparison with papers; alpha corrects its bias. Usable at 0.60 or above."),
    ),
    "recall -1": StatisticKind(
        _("Recall of negative"),
        _("Share of negative ratings on steps that the other annotators rate negative. 0.90 or higher is good."),
    ),
    "recall 0": StatisticKind(
        _("Recall of neutral"),
        _(
            "Share of neutral ratings on steps that the other annotators rate neutral. If it is low, "
            "clarify the guideline."
        ),
    ),
    "recall 1": StatisticKind(
        _("Recall of positive"),
        _("Share of positive ratings on steps that the other annotators rate positive. 0.90 or higher is good."),
    ),
    "over_credit": StatisticKind(
        _("Missed errors"),
        _("Share of neutral or positive ratings on steps that the other annotators rate negative. Below 0.10 is good."),
    ),
    "over_blame": StatisticKind(
        _("False alarms"),
        _("Share of negative ratings on steps that the other annotators rate neutral or positive. Below 0.10 is good."),
    ),
    "machine_accuracy": StatisticKind(
        _("First error, against the consensus"),
        _("Share of traces on which the machine names the first error of the consensus. Unreadable answers are wrong."),
    ),
    "machine_step_accuracy": StatisticKind(
        _("Steps, against the consensus"),
        _("Share of labeled steps to which the machine gives the label of the consensus. Missing labels are wrong."),
    ),
    "machine_missed": StatisticKind(
        _("Missed errors"), _("Share of traces with an error on which the machine names a later step or none.")
    ),
    "machine_false_alarms": StatisticKind(
        _("False alarms"), _("Share of correct steps that the machine reached and called the first error.")
    ),
    "machine_gold": StatisticKind(_("Hidden gold"), _("Share of hidden gold that the machine answers correctly.")),
    "machine_brier": StatisticKind(
        _("Brier score"), _("Mean squared difference between the stated probability and the outcome. Lower is better.")
    ),
    "machine_ece": StatisticKind(
        _("Calibration error"), _("Mean distance between stated probabilities and shares of correct labels.")
    ),
    "clause": StatisticKind(
        _("Clause, alpha"),
        _(
            "Agreement on the cited clauses, on steps for which several annotators cite some. Overlapping sets of"
            " clauses agree in part (MASI). Usable at 0.67 or above."
        ),
        0.67,
    ),
    "kind": StatisticKind(
        _("Kind of error, alpha"),
        _(
            "Agreement on the kinds of errors, on steps that several annotators rate negative. Overlapping sets of"
            " kinds agree in part (MASI). Usable at 0.67 or above."
        ),
        0.67,
    ),
    "severity": StatisticKind(
        _("Severity, ordinal alpha"),
        _("Agreement on the severity, on steps that several annotators rate negative. Usable at 0.67 or above."),
        0.67,
    ),
    "pairwise_agreement": StatisticKind(
        _("Raw agreement"),
        _("Share of pairs with the same rating. Chance alone makes it high when one rating is common."),
    ),
}


def describe_answer_statistic(title: str) -> StatisticKind:
    """Return the statistic of a question on the whole trace."""
    what = _(
        "Agreement on the answers to a question on the whole trace, corrected for chance. Usable at 0.67 or above."
    )
    return StatisticKind(title, what, 0.67)


_REASON_TEXTS: dict[str, LazyText] = {
    Reason.NO_PAIRS: _("Undefined: no trace has been labeled twice yet."),
    Reason.NO_VARIATION: _("Undefined: every rating is the same, so agreement by chance is certain."),
    Reason.NOT_NUMBERS: _("Undefined: the ratings are not numbers."),
    Reason.NO_ORDER: _("Undefined: the ratings have no order."),
    Reason.NO_CASES: _("Undefined: no cases of this kind."),
    Reason.FEW_PROBLEMS: _("No interval: fewer than 5 problems."),
    Reason.FEW_FOR_BOOTSTRAP: _("No interval: fewer than 30 problems."),
    Reason.RESTS_ON_ONE: _("No interval: the value depends on a single problem."),
    Reason.NO_SPREAD: _("No interval: all problems give the same value."),
    Reason.UNDEFINED: _("Undefined."),
    Reason.DRAWS_UNDEFINED: _("No interval: undefined in some of the resamples."),
    Reason.NOT_DRAWN: _("Bootstrap intervals are not available for this statistic."),
    Reason.FEW_GOLD: _("There are not enough gold traces yet."),
    Reason.BELOW_PROMISE: _("None: no threshold reaches 0.90 on hidden gold."),
    Reason.FEW_RATERS: _("Undefined: fewer than 5 annotators have been screened."),
    Reason.FEW_LABELERS: _("No interval: fewer than 5 annotators have submitted labels."),
    Reason.FEW_PEOPLE: _("Undefined: fewer than 3 people have labeled 30 of these traces that others labeled too."),
    Reason.FEW_BLIND: _("Fewer than 30 problems have been labeled by people."),
    Reason.FEW_LABELED: _("Fewer than 20 problems have been labeled by people."),
    Reason.NO_DEPENDENCE: _("The machine gives all traces the same label."),
}


def explain_missing_value(reason: str | None) -> str:
    return str(_REASON_TEXTS.get(reason or "", reason or ""))


@dataclass(frozen=True)
class StatisticEstimate(number_format.ValueWithInterval):
    """A statistic with its interval, its n, and the reason for whatever is missing."""

    key: str
    kind: StatisticKind
    n: int
    n_problems: int
    why: str  # the value or the interval is missing
    bootstrap: number_format.ValueWithInterval
    why_no_bootstrap: str

    @property
    def is_low(self) -> bool:
        return self.kind.mark is not None and self.value is not None and self.value < self.kind.mark


def build_estimate(
    key: str, estimate: Mapping[str, Any] | None, kind: StatisticKind | None = None
) -> StatisticEstimate:
    """Build a statistic from its stored form in the project's figures. `kind` is that of the key by default."""
    content = estimate or {"reason": Reason.NO_PAIRS}
    value, low = content.get("value"), content.get("low")
    return StatisticEstimate(
        key=key,
        kind=kind or STATISTIC_KINDS[key],
        value=value,
        low=low,
        high=content.get("high"),
        n=content.get("n_paired") or 0,
        n_problems=content.get("n_problems") or 0,
        why=explain_missing_value(content.get("reason") or (content.get("interval_reason") if low is None else None)),
        bootstrap=number_format.ValueWithInterval(value, *(content.get("bootstrap") or (None, None))),
        why_no_bootstrap=explain_missing_value(content.get("bootstrap_reason")),
    )


def share_columns(name: str, reads: Callable[[float | None], str] = number_format.format_share) -> list[TableColumn]:
    """Return the columns of a value and of its interval."""
    return number_columns(name, gettext("from"), gettext("to"), reads=reads)
