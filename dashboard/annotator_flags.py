"""Flags that ask a lead to review an annotator's work, each with its reason, its n and its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from charts import number_format
from dashboard import statistics
from labeling.models import Rater
from labeling.models.rater import RaterStage
from labeling.quality.signals import SignalDescription
from stats.estimates import Reason

MIN_CASES = 5  # no flag rests on fewer cases
HIGH_SHARE = 0.2  # share of missed errors, or of false alarms, that raises a flag


@dataclass(frozen=True)
class ShareOfCases(number_format.ValueWithInterval):
    n: int

    @property
    def text(self) -> str:
        """Return "0.31 [0.22, 0.42] of 58"."""
        return _("%(share)s %(interval)s of %(n)d") % {"share": self.shown, "interval": self.interval, "n": self.n}


@dataclass(frozen=True)
class QualitySignal:
    """A monitored signal, formatted by its kind: a run length, standard deviations, or a share."""

    signal: SignalDescription

    def _format(self, value: float) -> str:
        if self.signal.kind == "alike":
            return f"{value:.0f}"
        if self.signal.kind == "quick":
            return f"{value:.1f}".replace("-", "−")
        return number_format.format_share(value)

    @property
    def shown(self) -> str:
        return self._format(self.signal.value)

    @property
    def interval(self) -> str:
        if self.signal.kind == "alike":  # a run length is exact
            return ""
        return f"[{self._format(self.signal.low)}, {self._format(self.signal.high)}]"

    @property
    def usual(self) -> str:
        if self.signal.usual is None:
            return "–"
        if self.signal.kind == "alike":
            return _("%(n)s by chance") % {"n": f"{self.signal.usual:.2g}"}
        return number_format.format_share(self.signal.usual)

    @property
    def why(self) -> str:
        value = f"{self.shown} {self.interval}".strip()
        return _("%(what)s Measured: %(value)s, n = %(n)d.") % {
            "what": self.signal.what,
            "value": value,
            "n": self.signal.n,
        }


@dataclass(frozen=True)
class AnnotatorFlag:
    key: str
    name: str
    why: str


def describe_stage(rater: Rater) -> str:
    """Return the onboarding stage of a rater, or "" for raters who are working."""
    stages = {
        RaterStage.TRAINING: _("training"),
        RaterStage.SCREENING: _("screening"),
        RaterStage.FAILED: _("screening failed"),
    }
    return str(stages.get(RaterStage(rater.stage), ""))


def list_flags(
    *,
    signals: Sequence[QualitySignal],
    missed: ShareOfCases,
    blamed: ShareOfCases,
    gold: ShareOfCases,
    threshold: float | None,
) -> list[AnnotatorFlag]:
    """Return the raised signals, then the flags that follow from the shares in the same row."""
    flags = [AnnotatorFlag(each.signal.kind, each.signal.name, each.why) for each in signals if each.signal.is_raised]
    limit = number_format.format_share(HIGH_SHARE)
    if missed.n >= MIN_CASES and (missed.low or 0) > HIGH_SHARE:
        why = _("Missed the first error on %(share)s settled traces; above %(limit)s is high.")
        flags.append(AnnotatorFlag("missed_errors", _("missed errors"), why % {"share": missed.text, "limit": limit}))
    if blamed.n >= MIN_CASES and (blamed.low or 0) > HIGH_SHARE:
        why = _("Marked an error before the settled first error on %(share)s settled traces; above %(limit)s is high.")
        flags.append(AnnotatorFlag("false_alarms", _("false alarms"), why % {"share": blamed.text, "limit": limit}))
    if threshold is not None and gold.n >= MIN_CASES and gold.high is not None and gold.high < threshold:
        why = _("Correct on %(share)s hidden gold traces: the whole interval is below the gold threshold of %(limit)s.")
        values = {"share": gold.text, "limit": number_format.format_share(threshold)}
        flags.append(AnnotatorFlag("below_gold_threshold", _("below the gold threshold"), why % values))
    return flags


class GoldThresholdStatus(NamedTuple):
    state: str  # "missing", "unused" or "measured"
    text: str


def describe_gold_threshold(threshold: float | None, monitoring: Mapping[str, Any]) -> GoldThresholdStatus:
    """Describe the threshold below which annotators are paused, and how often it pauses someone by mistake."""
    if threshold is None:
        why = statistics.explain_missing_value(monitoring.get("reason") or Reason.FEW_GOLD)
        people = _("annotators who passed screening") if monitoring.get("screens") else _("annotators")
        text = _(
            "No gold threshold yet, so no one is paused automatically: it needs 200 answers to hidden gold from at"
            " least five %(people)s. %(why)s"
        )
        return GoldThresholdStatus("missing", text % {"people": people, "why": why})
    values = {"threshold": number_format.format_share(threshold)}
    if monitoring.get("false_pauses") is None:
        text = _("The gold threshold is %(threshold)s. No annotator received hidden gold in the last month.")
        return GoldThresholdStatus("unused", text % values)
    values |= {"n": f"{monitoring['false_pauses']:.1f}", "gold": str(monitoring["gold_a_rater"])}
    text = _(
        "The gold threshold is %(threshold)s. Of 100 annotators exactly at the threshold, %(n)s would be paused by"
        " mistake in their first month, with %(gold)s hidden gold traces each as last month; below 5 is good."
    )
    return GoldThresholdStatus("measured", text % values)
