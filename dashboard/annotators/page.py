"""The annotators of a project: how much, how fast, how well, at what cost. Reads the project's stored figures."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from charts import number_format
from dashboard import annotator_flags, money, rater_names, recent_activity
from dashboard.annotator_flags import AnnotatorFlag, GoldThresholdStatus, QualitySignal, ShareOfCases
from dashboard.recent_activity import RecentActivity
from dashboard.tables import DataTable, TableColumn
from labeling.models import Assignment, Lane, Project, Rater
from labeling.models.rater import RaterStage
from labeling.quality.project_stats import StoredProjectStats, load_project_stats
from labeling.quality.signals import describe_signals
from people.models import Membership
from stats import intervals

MAX_LISTED = 500  # on one page


@dataclass(frozen=True)
class AnnotatorSummary:
    rater: Rater
    name: str
    n_traces: int
    n_steps: int
    seconds_per_step: float | None
    gold: ShareOfCases
    missed: ShareOfCases
    blamed: ShareOfCases
    others: ShareOfCases
    stage: str  # of onboarding; empty for those who work
    flags: Sequence[AnnotatorFlag]
    signals: Sequence[QualitySignal]
    cost: Decimal | None
    pay: str  # the cost with its currency
    seen_at: dt.datetime | None
    activity: RecentActivity | None
    has_read_guideline: bool  # the current version; true for those who are not working yet

    @property
    def is_paused(self) -> bool:
        return self.rater.paused_at is not None


@dataclass(frozen=True)
class AnnotatorsPage:
    people: Sequence[AnnotatorSummary]
    n: int  # all annotators of the project; `people` has at most MAX_LISTED
    threshold: float | None
    threshold_status: GoldThresholdStatus
    table: DataTable
    days: DataTable
    now: dt.datetime
    choice: str = ""
    q: str = ""

    @property
    def paused(self) -> list[AnnotatorSummary]:
        return [person for person in self.people if person.is_paused]

    @property
    def choices(self) -> list[tuple[str, str, int]]:
        """Return the key, label and size of each filter."""
        labels = {
            "": _("All"),
            "active": _("Active this week"),
            "flagged": _("Flagged"),
            "paused": _("Paused"),
            "unread": _("Guideline unread"),
        }
        choices = [
            (key, label, sum(_matches_choice(person, key, self.now) for person in self.people))
            for key, label in labels.items()
        ]
        return [choice for choice in choices if choice[0] != "unread" or choice[2] or self.choice == "unread"]

    @property
    def listed(self) -> list[AnnotatorSummary]:
        words = self.q.casefold()
        return [
            person
            for person in self.people
            if _matches_choice(person, self.choice, self.now) and words in person.name.casefold()
        ]


def _matches_choice(person: AnnotatorSummary, choice: str, now: dt.datetime) -> bool:
    if choice == "active":
        return person.seen_at is not None and now - person.seen_at < dt.timedelta(days=7)
    if choice == "flagged":
        return bool(person.flags)
    if choice == "unread":
        return not person.has_read_guideline
    return choice != "paused" or person.is_paused


def load_annotators(actor: Membership, now: dt.datetime, *, choice: str = "", q: str = "") -> AnnotatorsPage:
    project = actor.project
    stats = load_project_stats(project_id=project.pk)
    figures = stats.content["raters"] if stats else {}
    keys, n = _select_listed(project, figures)
    raters = Rater.objects.filter(pk__in=keys)
    seen = _load_last_seen(raters)
    activity = recent_activity.load_recent_activity(project.pk, now)
    people = [
        _build_summary(rater, figures.get(str(rater.pk), {}), actor, seen.get(rater.pk), activity.get(rater.pk))
        for rater in raters.select_related("user")
    ]
    people.sort(key=lambda person: (-person.n_steps, person.name))
    monitoring = stats.content["watching"] if stats else {}
    return AnnotatorsPage(
        people=people,
        n=n,
        threshold=project.gold_bar,
        threshold_status=annotator_flags.describe_gold_threshold(project.gold_bar, monitoring),
        table=_build_table(people, project.currency),
        days=recent_activity.build_activity_table([(each.name, each.activity) for each in people if each.activity]),
        now=now,
        choice=choice,
        q=q.strip(),
    )


def _select_listed(project: Project, figures: dict[str, Any]) -> tuple[list[int], int]:
    """Return the raters to list, paused ones first, then those with the most steps; and how many there are in all."""
    members = Rater.objects.members().active().filter(project=project)
    ranked = sorted(
        (paused_at is None, -figures.get(str(pk), {}).get("steps", 0), pk)
        for pk, paused_at in members.values_list("pk", "paused_at")
    )
    return [pk for *_rank, pk in ranked[:MAX_LISTED]], len(ranked)


def load_annotator_summary(rater: Rater, actor: Membership, now: dt.datetime) -> AnnotatorSummary:
    """Load one annotator. `rater.user` must be loaded."""
    stats = load_project_stats(project_id=actor.project_id)
    figures = stats.content["raters"].get(str(rater.pk), {}) if stats else {}
    seen = _load_last_seen(Rater.objects.filter(pk=rater.pk))
    activity = recent_activity.load_recent_activity(actor.project_id, now, rater_id=rater.pk)
    return _build_summary(rater, figures, actor, seen.get(rater.pk), activity.get(rater.pk))


def _load_last_seen(raters: QuerySet[Rater]) -> dict[int, dt.datetime]:
    """Return when each rater last received a trace: the newest assignment per lane is found by index."""
    assigned = Assignment.objects.filter(held_at__isnull=False).order_by("-held_at").values("held_at")
    newest_of_lane = assigned.filter(rater=OuterRef(OuterRef("pk")), lane=OuterRef("pk"))[:1]
    lanes = Lane.objects.filter(project=OuterRef("project")).annotate(at=Subquery(newest_of_lane))
    in_lanes = lanes.order_by(F("at").desc(nulls_last=True)).values("at")[:1]
    without_lane = assigned.filter(rater=OuterRef("pk"), lane=None)[:1]
    rows = raters.order_by().values_list("pk", Subquery(in_lanes), Subquery(without_lane))
    return {pk: max(times) for pk, *values in rows if (times := [value for value in values if value])}


def count_flagged_annotators(project: Project, stats: StoredProjectStats) -> int:
    figures = stats.content["raters"]
    keys, _n = _select_listed(project, figures)
    return sum(bool(_assess_quality(figures.get(str(pk), {}), project).flags) for pk in keys)


class _QualityFigures(NamedTuple):
    gold: ShareOfCases
    missed: ShareOfCases
    blamed: ShareOfCases
    signals: list[QualitySignal]
    flags: list[AnnotatorFlag]


def _assess_quality(figures: dict[str, Any], project: Project) -> _QualityFigures:
    consensus, gold = figures.get("consensus") or {}, figures.get("gold") or {}
    right = _build_share(gold.get("right"), gold.get("n"))
    missed = _build_share(consensus.get("missed"), consensus.get("n"))
    blamed = _build_share(consensus.get("blamed"), consensus.get("n"))
    signals = [QualitySignal(signal) for signal in describe_signals(figures)]
    flags = annotator_flags.list_flags(
        signals=signals, missed=missed, blamed=blamed, gold=right, threshold=project.gold_bar
    )
    return _QualityFigures(right, missed, blamed, signals, flags)


def _build_summary(
    rater: Rater,
    figures: dict[str, Any],
    actor: Membership,
    seen_at: dt.datetime | None,
    activity: RecentActivity | None,
) -> AnnotatorSummary:
    project = actor.project
    n_steps, active_ms = figures.get("steps", 0), figures.get("active_ms", 0)
    cost = money.compute_labor_cost(project, figures.get("paid_ms", 0))
    others = figures.get("others") or {}
    return AnnotatorSummary(
        rater=rater,
        name=rater_names.get_display_name(rater, actor),
        n_traces=figures.get("readings", 0),
        n_steps=n_steps,
        seconds_per_step=active_ms / 1000 / n_steps if n_steps and active_ms else None,
        **_assess_quality(figures, project)._asdict(),
        others=_build_share(others.get("same"), others.get("pairs")),
        stage=annotator_flags.describe_stage(rater),
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


def _build_table(people: Sequence[AnnotatorSummary], currency: str) -> DataTable:
    shares = (_("Gold accuracy"), _("Missed errors"), _("False alarms"), _("Same as others"))
    columns = (
        TableColumn(_("Name")),
        TableColumn(_("Pseudonym")),
        TableColumn(_("Traces"), is_number=True),
        TableColumn(_("Steps"), is_number=True),
        TableColumn(_("Seconds per step"), is_number=True),
        *(column for name in shares for column in _share_columns(name)),
        TableColumn(_("Flags")),
        TableColumn(_("Pay, %(currency)s") % {"currency": currency}, is_number=True),
    )
    rows = [
        (
            *(person.name, person.rater.labeler, person.n_traces, person.n_steps),
            round(person.seconds_per_step, 2) if person.seconds_per_step else None,
            *(
                cell
                for share in (person.gold, person.missed, person.blamed, person.others)
                for cell in (share.value, share.low, share.high, share.n)
            ),
            ", ".join(flag.name for flag in person.flags),
            None if person.cost is None else round(person.cost, 2),
        )
        for person in people
    ]
    return DataTable("annotators", _("annotators"), columns, rows)


def _share_columns(name: str) -> list[TableColumn]:
    shares = [
        TableColumn(each, is_number=True, reads=number_format.format_share) for each in (name, _("from"), _("to"))
    ]
    return [*shares, TableColumn(_("of"), is_number=True)]
