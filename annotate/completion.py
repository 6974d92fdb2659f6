"""What somebody takes back to the crowd platform that sent them. Reads only."""

from typing import NamedTuple

from django.db.models import QuerySet

from labeling.models import Assignment, Project, Rater
from labeling.models.assignment import Purpose
from labeling.models.rater import RaterStage


class HandIn(NamedTuple):
    """A link, a code, or both. At least one is there."""

    url: str
    code: str


def of(rater: Rater) -> HandIn | None:
    """That of the screening for whoever did not pass it; that of the work for whoever has done some of it. Nobody takes
    a code who has done nothing."""
    project = rater.project
    if rater.stage == RaterStage.FAILED:
        return _given(project.screened_out_url, project.screened_out_code)
    return _given(project.completion_url, project.completion_code) if has_done(rater) else None


def is_offered(project: Project) -> bool:
    return bool(project.completion_url or project.completion_code)


def n_done(rater: Rater) -> int:
    """How many traces of the work, hidden gold among them, somebody has submitted."""
    return _done(rater).count()


def has_done(rater: Rater) -> bool:
    """Whether any: for pages that are looked at before each trace, where counting them all would cost more each day."""
    return _done(rater).exists()


def _done(rater: Rater) -> QuerySet[Assignment]:
    done = Assignment.objects.submitted().filter(rater=rater)
    return done.filter(purpose__in=[Purpose.WORK, Purpose.GOLD])


def _given(url: str, code: str) -> HandIn | None:
    return HandIn(url, code) if url or code else None
