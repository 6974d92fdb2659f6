"""Summaries of annotators from the project's stored figures: amount of work, speed, quality and cost.

Flags ask a lead to review an annotator's work, each with its reason, its n and its interval.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils.translation import gettext as _

import rawsql
from charts import number_format
from dashboard import money, rater_names, recent_activity, statistics
from dashboard.recent_activity import RecentActivity
from labeling.models import Project, ProjectStats, Rater
from labeling.models.rater import RaterStage
from labeling.quality import pay
from labeling.quality.protection import ProtectionStatus, describe_protection
from labeling.quality.signals import FALSE_FLAGS, N_SIMULATED, SignalDescription, describe_signals
from people.models import Membership
from stats import intervals
from stats.estimates import Reason

MAX_LISTED = 500  # on one page
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
    n_simulated: str = f"{N_SIMULATED:,}"

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
            return _("%(n)s expected by chance") % {"n": f"{self.signal.usual:.2g}"}
        return number_format.format_share(self.signal.usual)

    @property
    def why(self) -> str:
        value = f"{self.shown} {self.interval}".strip()
        values = {"what": self.signal.what, "value": value, "n": self.signal.n}
        return _("%(what)s Measured: %(value)s, n = %(n)d.") % values


@dataclass(frozen=True)
class AnnotatorFlag:
    key: str
    name: str
    why: str

    @property
    def n_false(self) -> int:
        """For how many of `n_simulated` simulated honest annotators the flag is raised."""
        return FALSE_FLAGS[self.key]

    @property
    def n_simulated(self) -> str:
        return f"{N_SIMULATED:,}"


@dataclass(frozen=True)
class AnnotatorQuality:
    gold: ShareOfCases
    missed: ShareOfCases
    blamed: ShareOfCases
    signals: Sequence[QualitySignal]
    flags: Sequence[AnnotatorFlag]
    protection: ProtectionStatus | None


@dataclass(frozen=True)
class AnnotatorSummary(AnnotatorQuality):
    rater: Rater
    name: str
    n_traces: int
    n_steps: int
    seconds_per_step: float | None
    others: ShareOfCases
    stage: str  # of onboarding; empty for those who work
    cost: Decimal | None
    pay: str  # the cost with its currency
    seen_at: dt.datetime | None
    activity: RecentActivity | None
    has_read_guideline: bool  # the current version; true for those who are not working yet

    @property
    def is_paused(self) -> bool:
        return self.rater.paused_at is not None and not self.is_removed

    @property
    def is_removed(self) -> bool:
        return self.rater.removed_at is not None


def load_summaries(
    actor: Membership, raters: QuerySet[Rater], figures: dict[str, Any], now: dt.datetime, *, only: int | None = None
) -> list[AnnotatorSummary]:
    """Load annotators of a project from its stored figures. `only`: the key, if `raters` is one."""
    rows = list(raters.select_related("user"))
    seen = _load_last_seen(actor.project_id, rows)
    activity = recent_activity.load_recent_activity(actor.project_id, now, rater_id=only)
    is_shown_pay = actor.project.pay_per_hour is not None and rater_names.can_see_names(actor)
    earned = pay.sum_by_rater(actor.project) if is_shown_pay else {}
    return [
        _build_summary(
            *(rater, figures.get(str(rater.pk), {}), actor, seen.get(rater.pk), activity.get(rater.pk)),
            cost=earned.get(rater.pk, Decimal(0)) if is_shown_pay else None,
        )
        for rater in rows
    ]


# The newest assignment in each lane, and of those without a lane, is found by index.
_LAST_SEEN = """
SELECT rater.id, GREATEST(
  (SELECT MAX(newest.held_at) FROM labeling_lane lane CROSS JOIN LATERAL (
    SELECT held_at FROM labeling_assignment
    WHERE rater_id = rater.id AND lane_id = lane.id AND held_at IS NOT NULL ORDER BY held_at DESC LIMIT 1) AS newest
   WHERE lane.project_id = %(project)s),
  (SELECT held_at FROM labeling_assignment
   WHERE rater_id = rater.id AND lane_id IS NULL AND held_at IS NOT NULL ORDER BY held_at DESC LIMIT 1))
FROM unnest(%(raters)s::bigint[]) AS rater (id)"""


def _load_last_seen(project_id: int, raters: Sequence[Rater]) -> dict[int, dt.datetime | None]:
    """Return when each rater last received a trace."""
    keys = [rater.pk for rater in raters]
    return dict(rawsql.fetch_rows(_LAST_SEEN, {"project": project_id, "raters": keys}))


def select_listed(project: Project, figures: dict[str, Any]) -> tuple[list[int], int]:
    """Return the raters to list, paused ones first, then those with the most steps; and how many there are in all.

    Removed raters with work come last: they stay in the pay list.
    """
    members = Rater.objects.members().filter(project=project)
    ranked = sorted(
        (removed_at is not None, paused_at is None, -figures.get(str(pk), {}).get("steps", 0), pk)
        for pk, paused_at, removed_at in members.values_list("pk", "paused_at", "removed_at")
        if removed_at is None or str(pk) in figures
    )
    return [pk for *_rank, pk in ranked[:MAX_LISTED]], len(ranked)


def count_flagged_annotators(project: Project, stats: ProjectStats) -> int:
    figures = stats.content["raters"]
    keys = Rater.objects.members().active().filter(project=project).values_list("pk", flat=True)
    return sum(bool(_assess_quality(figures.get(str(pk), {}), project).flags) for pk in keys)


def _assess_quality(figures: dict[str, Any], project: Project) -> AnnotatorQuality:
    consensus, gold = figures.get("consensus") or {}, figures.get("gold") or {}
    right = _build_share(gold.get("right"), gold.get("n"))
    missed = _build_share(consensus.get("missed"), consensus.get("n"))
    blamed = _build_share(consensus.get("blamed"), consensus.get("n"))
    signals = [QualitySignal(signal) for signal in describe_signals(figures)]
    flags = list_flags(signals=signals, missed=missed, blamed=blamed, gold=right, threshold=project.gold_bar)
    return AnnotatorQuality(right, missed, blamed, signals, flags, describe_protection(figures))


def _build_summary(
    rater: Rater,
    figures: dict[str, Any],
    actor: Membership,
    seen_at: dt.datetime | None,
    activity: RecentActivity | None,
    *,
    cost: Decimal | None,
) -> AnnotatorSummary:
    project = actor.project
    n_steps = figures.get("steps", 0)
    active_ms = figures.get("active_ms", 0) - figures.get("set_aside_ms", 0)
    others = figures.get("others") or {}
    return AnnotatorSummary(
        rater=rater,
        name=rater_names.get_display_name(rater, actor),
        n_traces=figures.get("readings", 0),
        n_steps=n_steps,
        seconds_per_step=active_ms / 1000 / n_steps if n_steps and active_ms else None,
        **vars(_assess_quality(figures, project)),
        others=_build_share(others.get("same"), others.get("pairs")),
        stage=describe_stage(rater),
        cost=cost,
        pay=money.format_amount(project, cost),
        seen_at=seen_at,
        activity=activity,
        has_read_guideline=rater.stage != RaterStage.WORKING or project.guideline_id in (None, rater.read_guideline_id),
    )


def _build_share(part: int | None, n: int | None) -> ShareOfCases:
    if not n:
        return ShareOfCases(None, None, None, 0)
    interval = intervals.wilson_interval(right=part or 0, n=n)
    return ShareOfCases((part or 0) / n, interval.low, interval.high, n)


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
        why = _("Missed the first error on %(share)s settled traces; a share above %(limit)s is high.")
        flags.append(AnnotatorFlag("missed_errors", _("missed errors"), why % {"share": missed.text, "limit": limit}))
    if blamed.n >= MIN_CASES and (blamed.low or 0) > HIGH_SHARE:
        why = _(
            "Marked an error before the settled first error on %(share)s settled traces; a share "
            "above %(limit)s is high."
        )
        flags.append(AnnotatorFlag("false_alarms", _("false alarms"), why % {"share": blamed.text, "limit": limit}))
    if threshold is not None and gold.n >= MIN_CASES and gold.high is not None and gold.high < threshold:
        why = _("Correct on %(share)s hidden gold traces: the whole interval is below the gold threshold of %(limit)s.")
        values = {"share": gold.text, "limit": number_format.format_share(threshold)}
        flags.append(AnnotatorFlag("below_gold_threshold", _("below the gold threshold"), why % values))
    return flags


def describe_stage(rater: Rater) -> str:
    """Return the onboarding stage of a rater, or "" for raters who are working."""
    stages = {
        RaterStage.TRAINING: _("training"),
        RaterStage.SCREENING: _("screening"),
        RaterStage.FAILED: _("screening failed"),
    }
    return str(stages.get(RaterStage(rater.stage), ""))


class GoldThresholdStatus(NamedTuple):
    state: str  # "missing", "unused" or "measured"
    text: str


def describe_gold_threshold(threshold: float | None, monitoring: Mapping[str, Any]) -> GoldThresholdStatus:
    """Describe the threshold below which annotators are paused, and how often it pauses someone by mistake."""
    if threshold is None:
        why = statistics.explain_missing_value(monitoring.get("reason") or Reason.FEW_GOLD)
        people = _("annotators who passed screening") if monitoring.get("screens") else _("annotators")
        text = _(
            "There is no gold threshold yet. It needs 200 answers to hidden gold from at least five %(people)s. %(why)s"
            " Until then, only overwhelming evidence pauses an annotator, if the settings allow it."
        )
        return GoldThresholdStatus("missing", text % {"people": people, "why": why})
    values = {"threshold": number_format.format_share(threshold)}
    if monitoring.get("false_pauses") is None:
        text = _("The gold threshold is %(threshold)s. No annotator received hidden gold in the last month.")
        return GoldThresholdStatus("unused", text % values)
    values |= {"n": f"{monitoring['false_pauses']:.1f}", "gold": str(monitoring["gold_a_rater"])}
    text = _(
        "The gold threshold is %(threshold)s. At last month’s rate of %(gold)s hidden gold traces each, %(n)s "
        "of 100 annotators whose accuracy is exactly at the threshold would be paused by mistake in their "
        "first month; below 5 is good."
    )
    return GoldThresholdStatus("measured", text % values)
