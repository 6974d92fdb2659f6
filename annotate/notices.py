"""Notices for an annotator: traces that were reclaimed while open, and requests to correct a submission. Read-only."""

from django.db.models import Count, F, Q, QuerySet

from accounts.models import User
from labeling import assignments
from labeling.models import Assignment, CorrectionRequest
from labeling.models.assignment import AssignmentState
from labeling.models.project import ProjectState

MAX_RECLAIMED = 5  # acknowledging one brings up the next


def list_reclaimed(user: User, slug: str | None = None, *, exclude: int | None = None) -> QuerySet[Assignment]:
    """Return unacknowledged reclaimed traces, newest first, in one project or in all. One query."""
    rated = Q(
        turns__revision=F("revision"), turns__judgments__option__position=0, turns__judgments__rating__isnull=False
    )
    rows = Assignment.objects.filter(
        rater__user=user,
        rater__removed_at=None,
        is_end_news=True,
        state__in=[AssignmentState.RELEASED, AssignmentState.LAPSED],
    ).exclude(project__state=ProjectState.ARCHIVED)
    if exclude is not None:
        rows = rows.exclude(pk=exclude)
    if slug is not None:
        rows = rows.filter(project__slug=slug)
    rows = rows.annotate(n_rated=Count("turns", filter=rated, distinct=True))
    return rows.select_related("project", "trace__problem").order_by("-ended_at", "-pk")[:MAX_RECLAIMED]


def list_reopened_requests(user: User, slug: str) -> QuerySet[CorrectionRequest]:
    """Return the open correction requests for submissions that the user has reopened in a project. One query."""
    requests = assignments.open_correction_requests(user=user)
    return requests.filter(assignment__project__slug=slug, assignment__reopened_at__isnull=False)


def find_correction_request(assignment: int, user: User) -> CorrectionRequest | None:
    return assignments.open_correction_requests(user=user).filter(assignment=assignment).first()
