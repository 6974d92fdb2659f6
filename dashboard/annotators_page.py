"""The raters of a project as its leads see them: how much, how fast, how well, what it costs. Reads the figures that
were computed behind the scenes and the raters themselves."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Max
from django.utils.translation import gettext as _

from dashboard import money, names
from dashboard.charts import words
from dashboard.tables import Column, Table
from labeling import quality
from labeling.agreement import proportions
from labeling.models import Assignment, Project, Rater
from labeling.models.rater import RaterKind, RaterStage
from labeling.quality.figures import Shown
from people.models import Membership

MOST = 500  # on one page
_FEW = 10  # gold answers below which nothing is said of somebody


@dataclass(frozen=True)
class Share:
    """So many of so many, with its interval."""

    n: int
    value: float | None
    low: float | None
    high: float | None

    @property
    def shown(self) -> str:
        return words.share(self.value)

    @property
    def interval(self) -> str:
        return words.interval(self.low, self.high)


@dataclass(frozen=True)
class Person:
    rater: Rater
    name: str
    readings: int
    steps: int
    seconds_per_step: float | None
    gold: Share
    missed: Share
    blamed: Share
    others: Share
    flags: Sequence[str]
    pay: str
    seen_at: dt.datetime | None

    @property
    def is_paused(self) -> bool:
        return self.rater.paused_at is not None


@dataclass(frozen=True)
class Annotators:
    shown: Shown | None
    people: Sequence[Person]
    bar: float | None
    table: Table

    @property
    def paused(self) -> list[Person]:
        return [person for person in self.people if person.is_paused]


def of(project: Project, actor: Membership) -> Annotators:
    shown = quality.figures_of(project_id=project.pk)
    figures = shown.content["raters"] if shown else {}
    raters = Rater.objects.filter(project=project, kind=RaterKind.MEMBER, removed_at=None).select_related("user")
    seen = dict(Assignment.objects.filter(rater__in=raters).order_by().values_list("rater").annotate(at=Max("held_at")))
    people = [
        _person(rater, figures.get(str(rater.pk), {}), project, actor, seen.get(rater.pk)) for rater in raters[:MOST]
    ]
    people.sort(key=lambda person: (-person.steps, person.name))
    return Annotators(shown, people, project.gold_bar, _table(people))


def _person(
    rater: Rater, told: dict[str, Any], project: Project, actor: Membership, seen_at: dt.datetime | None
) -> Person:
    steps, active_ms = told.get("steps", 0), told.get("active_ms", 0)
    consensus, gold, others = (told.get(name) or {} for name in ("consensus", "gold", "others"))
    pace = active_ms / 1000 / steps if steps and active_ms else None
    person = Person(
        rater=rater,
        name=names.of(rater, actor),
        readings=told.get("readings", 0),
        steps=steps,
        seconds_per_step=pace,
        gold=_share(gold.get("right"), gold.get("n")),
        missed=_share(consensus.get("missed"), consensus.get("n")),
        blamed=_share(consensus.get("blamed"), consensus.get("n")),
        others=_share(others.get("same"), others.get("pairs")),
        flags=(),
        pay=money.told(project, money.cost(project, told.get("paid_ms", 0))),
        seen_at=seen_at,
    )
    return replace(person, flags=_flags(person, project, told.get("flags", ())))


def _share(part: int | None, n: int | None) -> Share:
    if not n:
        return Share(0, None, None, None)
    around = proportions.wilson(right=part or 0, n=n)
    return Share(n, (part or 0) / n, around.low, around.high)


def _flags(person: Person, project: Project, raised: Sequence[str]) -> list[str]:
    """What a lead should look at; each follows from a figure on the same line."""
    stages = {
        RaterStage.TRAINING: _("training"),
        RaterStage.SCREENING: _("screening"),
        RaterStage.FAILED: _("screened out"),
    }
    flags = [str(stages[RaterStage(person.rater.stage)])] if person.rater.stage in stages else []
    signs = {"fast": _("fast"), "neutral": _("much neutral"), "no_errors": _("finds no errors")}
    flags += [signs.get(key, key) for key in raised]
    if person.missed.n >= _FEW and (person.missed.low or 0) > 0.2:
        flags.append(_("over-credit"))
    if person.blamed.n >= _FEW and (person.blamed.low or 0) > 0.2:
        flags.append(_("over-blame"))
    bar = project.gold_bar
    if bar is not None and person.gold.n >= _FEW and person.gold.high is not None and person.gold.high < bar:
        flags.append(_("below the gold bar"))
    return flags


def _table(people: Sequence[Person]) -> Table:
    columns = (
        Column(_("Name")),
        Column(_("Traces"), is_number=True),
        Column(_("Steps"), is_number=True),
        Column(_("Seconds a step"), is_number=True),
        *_shares(_("Gold right"), _("from"), _("to")),
        Column(_("Gold traces"), is_number=True),
        *_shares(_("Over-credit"), _("Over-blame"), _("Same as others")),
        Column(_("Flags")),
        Column(_("Pay")),
    )
    rows = [
        (
            *(each.name, each.readings, each.steps, round(each.seconds_per_step, 2) if each.seconds_per_step else None),
            *(each.gold.value, each.gold.low, each.gold.high, each.gold.n),
            *(each.missed.value, each.blamed.value, each.others.value),
            *(", ".join(each.flags), each.pay),
        )
        for each in people
    ]
    return Table("annotators", _("annotators"), columns, rows)


def _shares(*called: str) -> list[Column]:
    return [Column(name, is_number=True, reads=words.share) for name in called]
