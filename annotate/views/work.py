"""The work page and what its scripts ask for. Each POST finds the rater's own row, reads the clock, calls one verb."""

from collections.abc import Callable
from typing import cast

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import asked, completion, contents, ended, keys, messages, words
from annotate.messages import Batch, ClaimMessage, answer, answering, decode
from labeling import admission, judging, queue, raters, stations
from labeling.models import Assignment, Part, Rater, Submission
from labeling.models.assignment import AssignmentState
from labeling.texts import numbers
from people.models import Message


def _me(request: HttpRequest) -> User:
    return cast(User, request.user)


def _rater(request: HttpRequest, assignment: int) -> int:
    """Whose hands an assignment is in, if they are the asking person's. Somebody else's does not exist for them."""
    found = raters.of_assignment(assignment_id=assignment, user_id=_me(request).pk)
    if found is None:
        raise judging.AssignmentUnknown
    return found


@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(Rater.objects.select_related("project__guideline"), project__slug=slug, user=_me(request))
    opened = _opened(request, rater)
    if opened is not None and _is_over(opened):
        return redirect("annotate:submitted_one", opened)
    if opened is None and stations.next_of(rater=rater, project=rater.project) not in stations.WITH_TRACES:
        return redirect("annotate:enter", slug)
    told = {
        "project": rater.project,
        "guideline": rater.project.guideline,
        "guideline_url": reverse("annotate:guideline", args=[slug]),
        "offers_completion": completion.is_offered(rater.project),
        "config": words.config(request, rater.project),
        "first_trace": contents.of(opened) if opened else None,
        "asked": asked.in_work(_me(request), slug),
        "ended": ended.of(_me(request), slug, at=opened),
        "message": Message.objects.unread_in(rater.project, _me(request)),
        "error_categories": words.error_categories(),
        "keys": keys.of(_me(request)),
    }
    return render(request, "annotate/work.html", told)


def _opened(request: HttpRequest, rater: Rater) -> int | None:
    """The trace that was asked for by number (to correct it, or to see what became of it), or the one in hand."""
    mine = Assignment.objects.filter(rater=rater)
    if asked := request.GET.get("assignment"):
        return get_object_or_404(mine, pk=numbers.whole(asked)).pk
    return mine.filter(state=AssignmentState.OPENED).order_by("-opened_at").values_list("pk", flat=True).first()


def _is_over(assignment: int) -> bool:
    """Submitted and not being corrected: there is nothing to rate."""
    return Assignment.objects.submitted().filter(pk=assignment, reopened_at=None).exists()


@require_POST
@answering
def claim(request: HttpRequest, slug: str) -> HttpResponse:
    rater = raters.in_project(slug=slug, user_id=_me(request).pk)
    if rater is None:
        raise Http404
    message = decode(request.body, ClaimMessage)
    claimed = admission.claim(rater_id=rater, by=_me(request), now=timezone.now(), opened=message.opened)
    return answer(contents.of(claimed.assignment_id))


@require_safe
@answering
def content(request: HttpRequest, assignment: int) -> HttpResponse:
    _rater(request, assignment)
    return answer(contents.of(assignment))


@require_POST
@answering
def open_held(request: HttpRequest, assignment: int) -> HttpResponse:
    opened = queue.open_held(assignment_id=assignment, rater_id=_rater(request, assignment), now=timezone.now())
    return answer({"state": opened.state, "version": opened.version, "lease_ends_at": opened.lease_ends_at})


@require_POST
@answering
def record(request: HttpRequest, assignment: int) -> HttpResponse:
    rater, batch = _rater(request, assignment), decode(request.body, Batch)
    recorded = judging.record(
        assignment_id=assignment,
        rater_id=rater,
        client=batch.client,
        writes=batch.writes,
        now=timezone.now(),
    )
    return answer(
        {
            "version": recorded.version,
            "state": recorded.state,
            "is_late": recorded.is_late,
            "lease_ends_at": recorded.lease_ends_at,
            "lost": messages.lost_ones(recorded.lost),
        }
    )


@require_POST
@answering
def submit(request: HttpRequest, assignment: int) -> HttpResponse:
    return _end(request, assignment, judging.submit)


@require_POST
@answering
def give_up(request: HttpRequest, assignment: int) -> HttpResponse:
    return _end(request, assignment, judging.give_up)


@require_POST
@answering
def report(request: HttpRequest, assignment: int) -> HttpResponse:
    return _end(request, assignment, judging.report_problem)


def _end(request: HttpRequest, assignment: int, verb: Callable[..., Submission]) -> HttpResponse:
    """The rater is through with a trace, in one way or another: what is left to record comes along."""
    rater, batch = _rater(request, assignment), decode(request.body, Batch)
    submission = verb(
        assignment_id=assignment,
        rater_id=rater,
        client=batch.client,
        writes=batch.writes,
        reason=batch.reason,
        revision=batch.revision,
        active_ms=batch.active_ms,
        now=timezone.now(),
        by=_me(request),
    )
    told = {"revision": submission.revision, "finish_reason": submission.finish_reason}
    return answer({"state": "submitted", **told})


@require_POST
@answering
def skip(request: HttpRequest, assignment: int) -> HttpResponse:
    rater, batch = _rater(request, assignment), decode(request.body, Batch)
    judging.skip(
        assignment_id=assignment,
        rater_id=rater,
        reason=batch.reason,
        now=timezone.now(),
        by=_me(request),
    )
    return answer({"state": "released"})


@require_POST
@answering
def reopen(request: HttpRequest, assignment: int) -> HttpResponse:
    judging.reopen(assignment_id=assignment, rater_id=_rater(request, assignment), now=timezone.now(), by=_me(request))
    return answer(contents.of(assignment))


@require_POST
@answering
def release_held(request: HttpRequest, slug: str) -> HttpResponse:
    """The page closes: what was only fetched ahead goes back. What is opened stays."""
    rater = get_object_or_404(Rater, project__slug=slug, user=_me(request))
    queue.release_held(rater_id=rater.pk, now=timezone.now(), reason="page closed", by=_me(request))
    return answer({"state": "released"})


# Anything else, SVG above all, may carry scripts: it is not shown.
_SHOWN = {"image/png", "image/jpeg", "image/gif", "image/webp"}


@require_safe
def part(request: HttpRequest, part: int) -> HttpResponse:
    """An image of a trace that is, or was, in the asking person's hands."""
    mine = Assignment.objects.filter(rater__user=_me(request)).values("trace")
    found = get_object_or_404(Part, pk=part, kind="image", media_type__in=_SHOWN, option__step__trace__in=mine)
    return HttpResponse(found.data, content_type=found.media_type)
