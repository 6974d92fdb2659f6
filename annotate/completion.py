"""What somebody takes back to the crowd platform that sent them. Reads only."""

from typing import NamedTuple

from django.db.models import QuerySet

from labeling.models import Assignment, Project, Rater
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterStage


class CrowdCompletion(NamedTuple):
    """A link, a code, or both. At least one is there."""

    url: str
    code: str


def find_completion(rater: Rater) -> CrowdCompletion | None:
    """That of the screening for whoever did not pass it; that of the work for whoever has done some of it. Nobody takes
    a code who has done nothing."""
    project = rater.project
    if rater.stage == RaterStage.FAILED:
        return _completion_or_none(project.screened_out_url, project.screened_out_code)
    return _completion_or_none(project.completion_url, project.completion_code) if has_submitted(rater) else None


def is_offered(project: Project) -> bool:
    return bool(project.completion_url or project.completion_code)


def count_submitted(rater: Rater) -> int:
    """How many traces of the work, hidden gold among them, somebody has submitted."""
    return _submitted_work(rater).count()


def has_submitted(rater: Rater) -> bool:
    """Whether any: for pages that are looked at before each trace, where counting them all would cost more each day."""
    return _submitted_work(rater).exists()


def _submitted_work(rater: Rater) -> QuerySet[Assignment]:
    done = Assignment.objects.submitted().filter(rater=rater)
    return done.filter(purpose__in=[AssignmentPurpose.WORK, AssignmentPurpose.GOLD])


def _completion_or_none(url: str, code: str) -> CrowdCompletion | None:
    return CrowdCompletion(url, code) if url or code else None
