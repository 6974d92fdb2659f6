"""The projects a user manages: progress, pending work and last activity.

Read-only, from precomputed statistics. The number of queries does not depend on the number of projects."""

import datetime as dt
from collections.abc import Iterable, Sequence
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
    total: int  # 0 before the first submission
    pending: Sequence[str]  # what this user should act on
    last_worked_on: dt.date | None

    @property
    def project(self) -> Project:
        return self.todo.project


def list_managed_projects(todos: Iterable[ProjectTodo]) -> list[ManagedProject]:
    managed = [each for each in todos if each.may_read]
    keys = [each.project.pk for each in managed]
    if not keys:
        return []
    rows = ProjectStats.objects.filter(project__in=keys, computed_at__isnull=False)
    columns = ("content__settled__traces", "content__settled__of", "content__settlements__contested")
    stats = {pk: [n or 0 for n in counts] for pk, *counts in rows.values_list("project_id", *columns)}
    paused = _count_by(Rater.objects.active().filter(project__in=keys, paused_at__isnull=False), "project")
    subjects = [f"project:{pk}" for pk in keys]
    failed = _count_by(Job.objects.filter(subject__in=subjects, state=JobState.FAILED), "subject")
    last_days = dict(
        DailyProjectStats.objects.filter(project__in=keys).values_list("project").annotate(Max("day")).order_by()
    )
    projects = []
    for each in managed:
        pk = each.project.pk
        settled, total, contested = stats.get(pk, (0, 0, 0))
        pending = _describe_pending(each, contested, paused.get(pk, 0), failed.get(f"project:{pk}", 0))
        projects.append(ManagedProject(each, settled, total, pending, last_days.get(pk)))
    return projects


def _describe_pending(todo: ProjectTodo, contested: int, paused: int, failed: int) -> list[str]:
    """Describe what needs attention and what this member's role allows them to act on."""
    counts = (
        (Action.ADJUDICATE, contested, _("%(n)d contested")),
        (Action.PAUSE, paused, _("%(n)d paused")),
        (Action.READ, failed, ngettext("%(n)d job failed", "%(n)d jobs failed", failed)),
    )
    return [text % {"n": n} for action, n, text in counts if n and roles.membership_may(todo.membership, action)]


def _count_by(rows: QuerySet[Any, Any], by: str) -> dict[Any, int]:
    return dict(rows.values_list(by).annotate(Count("pk")).order_by())
