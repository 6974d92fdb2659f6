"""What went back while a person was in the middle of it, until they finish it or say that they know. Reads alone."""

from django.db.models import Count, F, Q, QuerySet

from accounts.models import User
from labeling.models import Assignment
from labeling.models.assignment import AssignmentState
from labeling.models.project import ProjectState

MAX_SHOWN = 5  # shown at once; the next one follows when one of these is read


def list_reclaimed(user: User, slug: str | None = None, *, at: int | None = None) -> QuerySet[Assignment]:
    """The newest first, in one project or in all; without the one that they are `at`. One query."""
    rated = Q(
        turns__revision=F("revision"), turns__judgments__option__position=0, turns__judgments__rating__isnull=False
    )
    news = Assignment.objects.filter(
        rater__user=user,
        rater__removed_at=None,
        is_end_news=True,
        state__in=[AssignmentState.RELEASED, AssignmentState.LAPSED],
    )
    news = news.exclude(project__state=ProjectState.ARCHIVED)
    news = news if at is None else news.exclude(pk=at)
    news = news if slug is None else news.filter(project__slug=slug)
    counted = news.annotate(n_rated=Count("turns", filter=rated, distinct=True))
    return counted.select_related("project", "trace__problem").order_by("-ended_at", "-pk")[:MAX_SHOWN]
