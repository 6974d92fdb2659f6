"""What a lead should look at in somebody's work: each with the reason in words, its n and interval. Reads nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from dashboard import statistics
from dashboard.charts import number_format
from labeling.models import Rater
from labeling.models.rater import RaterStage
from labeling.quality import signals
from stats.estimates import Reason

MIN_CASES = 5  # below which nothing is said of somebody; the interval does the rest
HIGH_SHARE = 0.2  # of traces on which the first error was missed, or seen too early


@dataclass(frozen=True)
class ShareOfCases(number_format.ValueWithInterval):
    """So many of so many, with its interval."""

    n: int

    @property
    def told(self) -> str:
        """ ".31 [.22, .42] of 58" """
        return _("%(share)s %(interval)s of %(n)d") % {"share": self.shown, "interval": self.interval, "n": self.n}


@dataclass(frozen=True)
class QualitySignal:
    """One of the signs that are watched, as it is written: a length, deviations, or a share."""

    told: signals.SignalDescription

    def _write(self, value: float) -> str:
        if self.told.kind == "alike":
            return f"{value:.0f}"
        return f"{value:.1f}".replace("-", "−") if self.told.kind == "quick" else number_format.format_share(value)

    @property
    def shown(self) -> str:
        return self._write(self.told.value)

    @property
    def interval(self) -> str:
        if self.told.kind == "alike":  # a length is known
            return ""
        return f"[{self._write(self.told.low)}, {self._write(self.told.high)}]"

    @property
    def usual(self) -> str:
        if self.told.usual is None:
            return "–"
        if self.told.kind == "alike":
            return _("%(n)s by chance") % {"n": f"{self.told.usual:.2g}"}
        return number_format.format_share(self.told.usual)

    @property
    def why(self) -> str:
        seen = {"value": self.shown, "interval": self.interval, "n": self.told.n}
        return _("%(what)s Here: %(seen)s.") % {
            "what": self.told.what,
            "seen": " ".join((_("%(value)s %(interval)s, n = %(n)d") % seen).split()).replace(" ,", ","),
        }


@dataclass(frozen=True)
class AnnotatorFlag:
    name: str
    why: str


def describe_stage(rater: Rater) -> str:
    """How far somebody is on the way in, where they are not at work."""
    stages = {
        RaterStage.TRAINING: _("training"),
        RaterStage.SCREENING: _("screening"),
        RaterStage.FAILED: _("screened out"),
    }
    return str(stages.get(RaterStage(rater.stage), ""))


def list_flags(
    *, signs: Sequence[QualitySignal], missed: ShareOfCases, blamed: ShareOfCases, gold: ShareOfCases, bar: float | None
) -> list[AnnotatorFlag]:
    """Those that the domain raised, and those that follow from the figures on the same line."""
    flags = [AnnotatorFlag(each.told.name, each.why) for each in signs if each.told.is_raised]
    if missed.n >= MIN_CASES and (missed.low or 0) > HIGH_SHARE:
        why = _("Went past the settled first error on %(told)s settled traces; more than %(much)s is much.")
        flags.append(
            AnnotatorFlag(_("over-credit"), why % {"told": missed.told, "much": number_format.format_share(HIGH_SHARE)})
        )
    if blamed.n >= MIN_CASES and (blamed.low or 0) > HIGH_SHARE:
        why = _("Saw an error before the settled one on %(told)s settled traces; more than %(much)s is much.")
        flags.append(
            AnnotatorFlag(_("over-blame"), why % {"told": blamed.told, "much": number_format.format_share(HIGH_SHARE)})
        )
    if bar is not None and gold.n >= MIN_CASES and gold.high is not None and gold.high < bar:
        why = _("Right on %(told)s hidden gold traces: the whole interval lies below the project’s bar of %(bar)s.")
        flags.append(
            AnnotatorFlag(_("below the gold bar"), why % {"told": gold.told, "bar": number_format.format_share(bar)})
        )
    return flags


def describe_gold_threshold(bar: float | None, told: Mapping[str, Any]) -> str:
    """The bar that pauses, and how often it would pause somebody who reaches it; or why nobody is watched."""
    if bar is None:
        why = statistics.explain_missing_value(told.get("reason") or Reason.FEW_GOLD)
        whose = _("people who passed the screening") if told.get("screens") else _("raters")
        return _(
            "There is no bar yet, so nobody is paused: it takes 200 answers to hidden gold by five %(whose)s at least."
            " %(why)s"
        ) % {"whose": whose, "why": why}
    if told.get("false_pauses") is None:
        return _("The bar is %(bar)s. Nobody met hidden gold in the last month.") % {
            "bar": number_format.format_share(bar)
        }
    return _(
        "The bar is %(bar)s. Of 100 people who reach it exactly, %(n)s would be paused for nothing in their first"
        " month, at %(gold)d hidden gold traces each as in the last; good is below 5."
    ) % {"bar": number_format.format_share(bar), "n": f"{told['false_pauses']:.1f}", "gold": told["gold_a_rater"]}
