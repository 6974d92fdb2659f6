"""Projects, their guidelines and whether work goes on in them. Alone writes Project and Guideline rows."""

import datetime as dt
from typing import Any

from django.db import transaction
from django.db.models import Max

from accounts.models import User
from events import log
from labeling import queue
from labeling.models import Guideline, Project
from labeling.models.project import ProjectState

# From which states a project may come into which. What is archived comes back as closed, to be looked at first.
_BEFORE: dict[ProjectState, tuple[ProjectState, ...]] = {
    ProjectState.OPEN: (ProjectState.PAUSED, ProjectState.CLOSED),
    ProjectState.PAUSED: (ProjectState.OPEN,),
    ProjectState.CLOSED: (ProjectState.OPEN, ProjectState.PAUSED, ProjectState.ARCHIVED),
    ProjectState.ARCHIVED: (ProjectState.CLOSED,),
}


class StateIsDifferent(Exception):
    """The project is in a state from which it cannot go where it was asked to."""


def create(*, name: str, slug: str, by: User | None, now: dt.datetime, **settings: Any) -> Project:
    """A new project without members: `people.projects.create` makes one with an owner."""
    with transaction.atomic():
        project = Project.objects.create(name=name, slug=slug, created_by=by, created_at=now, **settings)
        log.append(what="project.created", by=by, now=now, project=project.pk, subject=f"project:{project.pk}")
    return project


def publish_guideline(*, project: Project, body: str, by: User | None, now: dt.datetime) -> Guideline:
    """The next version of what raters are told. Traces that nobody has opened yet go back: they must be read anew."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        last = project.guidelines.aggregate(version=Max("version"))["version"] or 0
        guideline = Guideline.objects.create(
            project=project, version=last + 1, body=body, published_at=now, published_by=by
        )
        project.guideline = guideline
        project.save(update_fields=["guideline"])
        queue.release_held(project_id=project.pk, now=now, reason="guideline changed", by=by)
        _say("guideline.published", project, by, now, version=guideline.version)
    return guideline


def pause(*, project: Project, by: User | None, now: dt.datetime) -> None:
    """Nothing is handed out until it goes on. What is opened may be finished."""
    _move(project, ProjectState.PAUSED, "project.paused", by, now)


def resume(*, project: Project, by: User | None, now: dt.datetime) -> None:
    _move(project, ProjectState.OPEN, "project.resumed", by, now)


def close(*, project: Project, by: User | None, now: dt.datetime) -> None:
    """Work has ended; corrections too."""
    _move(project, ProjectState.CLOSED, "project.closed", by, now)


def archive(*, project: Project, by: User | None, now: dt.datetime) -> None:
    """Out of everybody's lists; nothing is deleted."""
    _move(project, ProjectState.ARCHIVED, "project.archived", by, now)


def set_gold_bar(*, project: Project, bar: float, by: User | None, now: dt.datetime) -> None:
    """What share of hidden gold is right of a rater who may go on. Set by a lead, or once from the project's own."""
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(gold_bar=bar)
        _say("project.gold_bar_set", project, by, now, bar=bar)
    project.gold_bar = bar


def _move(project: Project, to: ProjectState, what: str, by: User | None, now: dt.datetime) -> None:
    with transaction.atomic():
        # The condition stands in the statement that writes: of two leads who press at once, one is told.
        moved = Project.objects.filter(pk=project.pk, state__in=_BEFORE[to]).update(state=to)
        if not moved:
            raise StateIsDifferent(f"The project cannot become {to.label} from where it is. Reload the page.")
        project.state = to
        if to is not ProjectState.OPEN:
            queue.release_held(project_id=project.pk, now=now, reason=what, by=by)
        _say(what, project, by, now)


def _say(what: str, project: Project, by: User | None, now: dt.datetime, **detail: Any) -> None:
    log.append(what=what, by=by, now=now, project=project.pk, subject=f"project:{project.pk}", detail=detail)
