"""Completion links and codes for annotators from a crowd platform. Read-only."""

from typing import NamedTuple

from django.db.models import QuerySet

from labeling.models import Assignment, Project, Rater
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterStage


class CrowdCompletion(NamedTuple):
    """A link, a code, or both; never neither."""

    url: str
    code: str


def find_completion(rater: Rater) -> CrowdCompletion | None:
    """Return the screened-out completion for a failed rater, the regular one once the rater has submitted work."""
    project = rater.project
    if rater.stage == RaterStage.FAILED:
        return _completion_or_none(project.screened_out_url, project.screened_out_code)
    return _completion_or_none(project.completion_url, project.completion_code) if has_submitted(rater) else None


def is_offered(project: Project) -> bool:
    return bool(project.completion_url or project.completion_code)


def count_submitted(rater: Rater) -> int:
    """Count submitted work, including hidden gold but not training and screening."""
    return _submitted_work(rater).count()


def has_submitted(rater: Rater) -> bool:
    """Like `count_submitted() > 0`, at a cost that does not grow with the rater's work."""
    return _submitted_work(rater).exists()


def _submitted_work(rater: Rater) -> QuerySet[Assignment]:
    return Assignment.objects.submitted().filter(
        rater=rater, purpose__in=[AssignmentPurpose.WORK, AssignmentPurpose.GOLD]
    )


def _completion_or_none(url: str, code: str) -> CrowdCompletion | None:
    return CrowdCompletion(url, code) if url or code else None
