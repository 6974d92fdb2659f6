"""The raters of a project as its leads see them: how much, how fast, how well, what it costs. Reads the figures that
were computed behind the scenes and the raters themselves."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from dashboard import annotator_flags, money, rater_names, recent_activity
from dashboard.annotator_flags import AnnotatorFlag, QualitySignal, ShareOfCases
from dashboard.charts import number_format
from dashboard.recent_activity import RecentActivity
from dashboard.tables import DataTable, TableColumn
from labeling.models import Assignment, Lane, Project, Rater
from labeling.models.rater import RaterStage
from labeling.quality import signals
from labeling.quality.project_stats import StoredProjectStats, load_project_stats
from people.models import Membership
from stats import intervals

MAX_LISTED = 500  # on one page


@dataclass(frozen=True)
class AnnotatorSummary:
    rater: Rater
    name: str
    readings: int
    steps: int
    seconds_per_step: float | None
    gold: ShareOfCases
    missed: ShareOfCases
    blamed: ShareOfCases
    others: ShareOfCases
    stage: str  # on the way in; empty for whoever is at work
    flags: Sequence[AnnotatorFlag]
    signs: Sequence[QualitySignal]  # of which flags were raised, or not
    paid: Decimal | None
    pay: str  # that, as it is read
    seen_at: dt.datetime | None

    lately: RecentActivity | None  # None: nothing in these days
    has_read: bool  # the guideline that is in force, or has not come to work yet

    @property
    def is_paused(self) -> bool:
        return self.rater.paused_at is not None


@dataclass(frozen=True)
class AnnotatorsPage:
    shown: StoredProjectStats | None
    people: Sequence[AnnotatorSummary]
    n: int  # whoever rates here; on the page there is room for so many
    bar: float | None
    watched: str  # how the bar came about, and what watching costs
    table: DataTable
    days: DataTable
    now: dt.datetime
    choice: str = ""  # which of them are listed
    q: str = ""

    @property
    def paused(self) -> list[AnnotatorSummary]:
        return [person for person in self.people if person.is_paused]

    @property
    def choices(self) -> list[tuple[str, str, int]]:
        """What can be listed: its key, its name, how many."""
        named = {
            "": _("All"),
            "active": _("Active this week"),
            "flagged": _("Flagged"),
            "paused": _("Paused"),
            "unread": _("Guideline unread"),
        }
        found = [
            (key, name, sum(_matches_choice(each, key, self.now) for each in self.people))
            for key, name in named.items()
        ]
        return [each for each in found if each[0] != "unread" or each[2] or self.choice == "unread"]

    @property
    def listed(self) -> list[AnnotatorSummary]:
        wanted = self.q.casefold()
        return [
            each
            for each in self.people
            if _matches_choice(each, self.choice, self.now) and wanted in each.name.casefold()
        ]


def _matches_choice(person: AnnotatorSummary, choice: str, now: dt.datetime) -> bool:
    if choice == "active":
        return person.seen_at is not None and now - person.seen_at < dt.timedelta(days=7)
    if choice == "flagged":
        return bool(person.flags)
    if choice == "unread":
        return not person.has_read
    return choice != "paused" or person.is_paused


def load_annotators(actor: Membership, now: dt.datetime, *, choice: str = "", q: str = "") -> AnnotatorsPage:
    project = actor.project
    shown = load_project_stats(project_id=project.pk)
    figures = shown.content["raters"] if shown else {}
    keys, n = _select_listed(project, figures)
    raters = Rater.objects.filter(pk__in=keys)
    seen = _load_last_seen(raters)
    days = recent_activity.load_recent_activity(project.pk, now)
    people = [
        _build_summary(rater, figures.get(str(rater.pk), {}), actor, seen.get(rater.pk), days.get(rater.pk))
        for rater in raters.select_related("user")
    ]
    people.sort(key=lambda person: (-person.steps, person.name))
    watched = annotator_flags.describe_gold_threshold(project.gold_bar, shown.content["watching"] if shown else {})
    behind = recent_activity.build_activity_table([(each.name, each.lately) for each in people if each.lately])
    table = _build_table(people, project.currency)
    return AnnotatorsPage(shown, people, n, project.gold_bar, watched, table, behind, now, choice, q.strip())


def _select_listed(project: Project, figures: dict[str, Any]) -> tuple[list[int], int]:
    """Who stands on the page, by the rater's id, and how many there are. Where it has no room for all: whoever is
    paused, since a lead has to look at them, then who rated most."""
    members = Rater.objects.members().active().filter(project=project)
    every = sorted(
        (paused_at is None, -figures.get(str(pk), {}).get("steps", 0), pk)
        for pk, paused_at in members.values_list("pk", "paused_at")
    )
    return [pk for *_first, pk in every[:MAX_LISTED]], len(every)


def load_annotator_summary(rater: Rater, actor: Membership, now: dt.datetime) -> AnnotatorSummary:
    """One of them, whose `user` was read with them."""
    shown = load_project_stats(project_id=actor.project_id)
    told = shown.content["raters"].get(str(rater.pk), {}) if shown else {}
    seen = _load_last_seen(Rater.objects.filter(pk=rater.pk))
    days = recent_activity.load_recent_activity(actor.project_id, now, rater_id=rater.pk)
    return _build_summary(rater, told, actor, seen.get(rater.pk), days.get(rater.pk))


def _load_last_seen(raters: QuerySet[Rater]) -> dict[int, dt.datetime]:
    """When each was handed a trace last: by the newest of each lane, which an index knows, not by all of them."""
    handed = Assignment.objects.filter(held_at__isnull=False).order_by("-held_at").values("held_at")
    of_lane = handed.filter(rater=OuterRef(OuterRef("pk")), lane=OuterRef("pk"))[:1]
    lanes = Lane.objects.filter(project=OuterRef("project")).annotate(at=Subquery(of_lane))
    in_lanes = lanes.order_by(F("at").desc(nulls_last=True)).values("at")[:1]
    elsewhere = handed.filter(rater=OuterRef("pk"), lane=None)[:1]
    rows = raters.order_by().values_list("pk", Subquery(in_lanes), Subquery(elsewhere))
    return {pk: max(known) for pk, *moments in rows if (known := [each for each in moments if each])}


def count_flagged_annotators(project: Project, shown: StoredProjectStats) -> int:
    """How many of them should be looked at."""
    figures = shown.content["raters"]
    told = (figures.get(str(pk), {}) for pk in _select_listed(project, figures)[0])
    return sum(bool(_assess_quality(each, project).flags) for each in told)


class _QualityFigures(NamedTuple):
    """What is said of somebody's quality, and what of it should be looked at."""

    gold: ShareOfCases
    missed: ShareOfCases
    blamed: ShareOfCases
    signs: list[QualitySignal]
    flags: list[AnnotatorFlag]


def _assess_quality(told: dict[str, Any], project: Project) -> _QualityFigures:
    consensus, gold = (told.get(name) or {} for name in ("consensus", "gold"))
    right, missed, blamed = (
        _build_share(part.get(name), part.get("n"))
        for part, name in ((gold, "right"), (consensus, "missed"), (consensus, "blamed"))
    )
    signs = [QualitySignal(each) for each in signals.describe_signals(told)]
    flags = annotator_flags.list_flags(signs=signs, missed=missed, blamed=blamed, gold=right, bar=project.gold_bar)
    return _QualityFigures(right, missed, blamed, signs, flags)


def _build_summary(
    rater: Rater, told: dict[str, Any], actor: Membership, seen_at: dt.datetime | None, days: RecentActivity | None
) -> AnnotatorSummary:
    project, judged = actor.project, _assess_quality(told, actor.project)
    steps, active_ms = told.get("steps", 0), told.get("active_ms", 0)
    paid = money.compute_labor_cost(project, told.get("paid_ms", 0))
    others = told.get("others") or {}
    return AnnotatorSummary(
        rater=rater,
        name=rater_names.get_display_name(rater, actor),
        readings=told.get("readings", 0),
        steps=steps,
        seconds_per_step=active_ms / 1000 / steps if steps and active_ms else None,
        **judged._asdict(),
        others=_build_share(others.get("same"), others.get("pairs")),
        stage=annotator_flags.describe_stage(rater),
        paid=paid,
        pay=money.format_amount(project, paid),
        seen_at=seen_at,
        lately=days,
        has_read=rater.stage != RaterStage.WORKING or project.guideline_id in (None, rater.read_guideline_id),
    )


def _build_share(part: int | None, n: int | None) -> ShareOfCases:
    if not n:
        return ShareOfCases(None, None, None, 0)
    around = intervals.wilson_interval(right=part or 0, n=n)
    return ShareOfCases((part or 0) / n, around.low, around.high, n)


def _build_table(people: Sequence[AnnotatorSummary], currency: str) -> DataTable:
    shares = (_("Gold right"), _("Over-credit"), _("Over-blame"), _("Same as others"))
    columns = (
        TableColumn(_("Name")),
        TableColumn(_("Pseudonym")),
        TableColumn(_("Traces"), is_number=True),
        TableColumn(_("Steps"), is_number=True),
        TableColumn(_("Seconds a step"), is_number=True),
        *(column for name in shares for column in _share_columns(name)),
        TableColumn(_("Flags")),
        TableColumn(_("Pay, %(currency)s") % {"currency": currency}, is_number=True),
    )
    rows = [
        (
            *(each.name, each.rater.labeler, each.readings, each.steps),
            round(each.seconds_per_step, 2) if each.seconds_per_step else None,
            *(cell for one in (each.gold, each.missed, each.blamed, each.others) for cell in _share_cells(one)),
            *(", ".join(flag.name for flag in each.flags), None if each.paid is None else round(each.paid, 2)),
        )
        for each in people
    ]
    return DataTable("annotators", _("annotators"), columns, rows)


def _share_columns(name: str) -> list[TableColumn]:
    shares = [
        TableColumn(each, is_number=True, reads=number_format.format_share) for each in (name, _("from"), _("to"))
    ]
    return [*shares, TableColumn(_("of"), is_number=True)]


def _share_cells(share: ShareOfCases) -> tuple[float | None, float | None, float | None, int]:
    return share.value, share.low, share.high, share.n
