"""The projects that somebody leads, as they stand: how far each is, what waits in it, when somebody last worked there.
Reads alone, from figures that were computed behind the scenes; the same number of queries however many projects."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.todo import ProjectTodo
from jobs.models import Job, JobState
from labeling.models import DailyProjectStats, Project, ProjectStats, Rater
from people import roles
from people.roles import Action


@dataclass(frozen=True)
class ManagedProject:
    todo: ProjectTodo
    settled: int
    total: int  # 0: nothing was submitted yet
    waiting: Sequence[str]  # for this person to act upon
    worked_on: dt.date | None

    @property
    def project(self) -> Project:
        return self.todo.project


def list_managed_projects(todos: Iterable[ProjectTodo]) -> list[ManagedProject]:
    mine = [each for each in todos if each.may_read]
    keys = [each.project.pk for each in mine]
    if not keys:
        return []
    kept = ProjectStats.objects.filter(project__in=keys, computed_at__isnull=False)
    columns = ("content__settled__traces", "content__settled__of", "content__settlements__contested")
    figures = {pk: [n or 0 for n in counted] for pk, *counted in kept.values_list("project_id", *columns)}
    paused = _count_by(Rater.objects.active().filter(project__in=keys, paused_at__isnull=False), "project")
    subjects = [f"project:{pk}" for pk in keys]
    failed = _count_by(Job.objects.filter(subject__in=subjects, state=JobState.FAILED), "subject")
    worked = dict(
        DailyProjectStats.objects.filter(project__in=keys).values_list("project").annotate(Max("day")).order_by()
    )
    return [_build_managed_project(each, figures, paused, failed, worked) for each in mine]


def _build_managed_project(
    todo: ProjectTodo,
    figures: Mapping[int, Sequence[int]],
    paused: Mapping[Any, int],
    failed: Mapping[Any, int],
    worked: Mapping[int, dt.date],
) -> ManagedProject:
    pk = todo.project.pk
    settled, total, contested = figures.get(pk, (0, 0, 0))
    asked = (
        (Action.ADJUDICATE, contested, _("%(n)d contested")),
        (Action.PAUSE, paused.get(pk, 0), _("%(n)d paused")),
        (Action.READ, n := failed.get(f"project:{pk}", 0), ngettext("%(n)d job failed", "%(n)d jobs failed", n)),
    )
    waiting = [told % {"n": n} for action, n, told in asked if n and roles.membership_may(todo.membership, action)]
    return ManagedProject(todo, settled, total, waiting, worked.get(pk))


def _count_by(rows: QuerySet[Any, Any], by: str) -> dict[Any, int]:
    return dict(rows.values_list(by).annotate(Count("pk")).order_by())
