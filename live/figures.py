"""Figures of live labeling in a project, for its leads."""

from dataclasses import dataclass
from decimal import Decimal
from statistics import quantiles

from django.db.models import Count, Q

from labeling.models import Problem, Project
from live import option_requests
from live.models import LiveOption, LiveSession, LiveSessionState, OptionRequest, OptionRequestState

_LATEST = 1000  # answers whose times are summarized


@dataclass(frozen=True)
class LiveFigures:
    n_problems: int
    n_open: int
    n_aside: int
    n_ended: int
    n_requests: int
    n_failed: int
    n_options: int
    n_duplicates: int
    n_truncated: int
    n_dropped: int
    median_ms: int | None
    p95_ms: int | None
    tokens: int
    money: Decimal


def load_figures(project: Project) -> LiveFigures:
    sessions = LiveSession.objects.filter(project=project, rater__isnull=False)
    states = dict(sessions.order_by().values_list("state").annotate(n=Count("pk")))
    requests = OptionRequest.objects.filter(session__project=project)
    counts = requests.aggregate(
        n=Count("pk", filter=Q(state=OptionRequestState.ANSWERED)),
        n_failed=Count("pk", filter=Q(state__in=[OptionRequestState.FAILED, OptionRequestState.REFUSED])),
    )
    options = LiveOption.objects.filter(request__session__project=project).aggregate(
        n=Count("pk"),
        n_same=Count("pk", filter=Q(same_as__isnull=False)),
        n_cut=Count("pk", filter=Q(ending="truncated")),
    )
    answered = requests.filter(state=OptionRequestState.ANSWERED)
    latest = list(answered.order_by("-pk").values_list("milliseconds", "dropped")[:_LATEST])
    times = sorted(milliseconds for milliseconds, _dropped in latest)
    tokens, money = option_requests.sum_project_costs(project.pk)
    return LiveFigures(
        n_problems=Problem.objects.filter(project=project, is_reserve=False).count(),
        n_open=states.get(LiveSessionState.OPEN, 0),
        n_aside=states.get(LiveSessionState.ASIDE, 0),
        n_ended=states.get(LiveSessionState.ENDED, 0),
        n_requests=counts["n"],
        n_failed=counts["n_failed"],
        n_options=options["n"],
        n_duplicates=options["n_same"],
        n_truncated=options["n_cut"],
        n_dropped=sum(sum(dropped.values()) for _milliseconds, dropped in latest),
        median_ms=times[len(times) // 2] if times else None,
        p95_ms=round(quantiles(times, n=20)[-1]) if len(times) > 1 else None,
        tokens=tokens,
        money=money,
    )
