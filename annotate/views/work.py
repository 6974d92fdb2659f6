"""The work page and what its scripts ask for. Each POST finds the rater's own row, reads the clock, calls one verb."""

from collections.abc import Callable
from typing import cast

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import client_strings, completion, correction_notes, keys, reclaim_notices, trace_payload, work_api
from annotate.work_api import ClaimMessage, WriteBatch, decode_body, json_response, refusals_as_json
from formats import integers
from labeling import assignments, gates, onboarding, queue, raters
from labeling.models import Assignment, OptionPart, Rater, Submission
from labeling.models.assignment import AssignmentState
from people.models import MemberMessage


def _current_user(request: HttpRequest) -> User:
    return cast(User, request.user)


def _own_rater_id(request: HttpRequest, assignment: int) -> int:
    """Whose hands an assignment is in, if they are the asking person's. Somebody else's does not exist for them."""
    found = raters.find_rater_id_of_assignment(assignment_id=assignment, user_id=_current_user(request).pk)
    if found is None:
        raise assignments.AssignmentUnknown
    return found


@require_safe
def show_work_page(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(
        Rater.objects.select_related("project__guideline"), project__slug=slug, user=_current_user(request)
    )
    opened = _assignment_to_show(request, rater)
    if opened is not None and _is_over(opened):
        return redirect("annotate:submitted_one", opened)
    if opened is None and gates.next_gate(rater=rater, project=rater.project) not in gates.GATES_WITH_TRACES:
        return redirect("annotate:enter", slug)
    told = {
        "project": rater.project,
        "guideline": rater.project.guideline,
        "guideline_url": reverse("annotate:guideline", args=[slug]),
        "offers_completion": completion.is_offered(rater.project),
        "config": client_strings.work_page_config(request, rater.project),
        "first_trace": trace_payload.build_payload(opened) if opened else None,
        "asked": correction_notes.list_in_project(_current_user(request), slug),
        "ended": reclaim_notices.list_reclaimed(_current_user(request), slug, at=opened),
        "message": MemberMessage.objects.unread_in(rater.project, _current_user(request)),
        "error_categories": client_strings.error_categories(),
        "keys": keys.load_keys(_current_user(request)),
    }
    return render(request, "annotate/work.html", told)


def _assignment_to_show(request: HttpRequest, rater: Rater) -> int | None:
    """The trace that was asked for by number (to correct it, or to see what became of it), or the one in hand."""
    mine = Assignment.objects.filter(rater=rater)
    if asked := request.GET.get("assignment"):
        return get_object_or_404(mine, pk=integers.parse_integer(asked)).pk
    return mine.filter(state=AssignmentState.OPENED).order_by("-opened_at").values_list("pk", flat=True).first()


def _is_over(assignment: int) -> bool:
    """Submitted and not being corrected: there is nothing to rate."""
    return Assignment.objects.submitted().filter(pk=assignment, reopened_at=None).exists()


@require_POST
@refusals_as_json
def claim(request: HttpRequest, slug: str) -> HttpResponse:
    rater = raters.find_rater_id(slug=slug, user_id=_current_user(request).pk)
    if rater is None:
        raise Http404
    message = decode_body(request.body, ClaimMessage)
    claimed = onboarding.claim_trace(
        rater_id=rater, by=_current_user(request), now=timezone.now(), opened=message.opened
    )
    return json_response(trace_payload.build_payload(claimed.assignment_id))


@require_safe
@refusals_as_json
def send_trace(request: HttpRequest, assignment: int) -> HttpResponse:
    _own_rater_id(request, assignment)
    return json_response(trace_payload.build_payload(assignment))


@require_POST
@refusals_as_json
def open_held(request: HttpRequest, assignment: int) -> HttpResponse:
    opened = queue.open_assignment(
        assignment_id=assignment, rater_id=_own_rater_id(request, assignment), now=timezone.now()
    )
    return json_response({"state": opened.state, "version": opened.version, "lease_ends_at": opened.lease_ends_at})


@require_POST
@refusals_as_json
def record(request: HttpRequest, assignment: int) -> HttpResponse:
    rater, batch = _own_rater_id(request, assignment), decode_body(request.body, WriteBatch)
    recorded = assignments.record_edits(
        assignment_id=assignment,
        rater_id=rater,
        client=batch.client,
        writes=batch.writes,
        now=timezone.now(),
    )
    return json_response(
        {
            "version": recorded.version,
            "state": recorded.state,
            "is_late": recorded.is_late,
            "lease_ends_at": recorded.lease_ends_at,
            "lost": work_api.describe_lost_writes(recorded.lost),
        }
    )


@require_POST
@refusals_as_json
def submit(request: HttpRequest, assignment: int) -> HttpResponse:
    return _finish(request, assignment, assignments.submit)


@require_POST
@refusals_as_json
def give_up(request: HttpRequest, assignment: int) -> HttpResponse:
    return _finish(request, assignment, assignments.give_up)


@require_POST
@refusals_as_json
def report_problem(request: HttpRequest, assignment: int) -> HttpResponse:
    return _finish(request, assignment, assignments.report_problem)


def _finish(request: HttpRequest, assignment: int, verb: Callable[..., Submission]) -> HttpResponse:
    """The rater is through with a trace, in one way or another: what is left to record comes along."""
    rater, batch = _own_rater_id(request, assignment), decode_body(request.body, WriteBatch)
    submission = verb(
        assignment_id=assignment,
        rater_id=rater,
        client=batch.client,
        writes=batch.writes,
        reason=batch.reason,
        revision=batch.revision,
        active_ms=batch.active_ms,
        now=timezone.now(),
        by=_current_user(request),
    )
    told = {"revision": submission.revision, "finish_reason": submission.finish_reason}
    return json_response({"state": "submitted", **told})


@require_POST
@refusals_as_json
def skip(request: HttpRequest, assignment: int) -> HttpResponse:
    rater, batch = _own_rater_id(request, assignment), decode_body(request.body, WriteBatch)
    assignments.skip_trace(
        assignment_id=assignment,
        rater_id=rater,
        reason=batch.reason,
        now=timezone.now(),
        by=_current_user(request),
    )
    return json_response({"state": "released"})


@require_POST
@refusals_as_json
def reopen(request: HttpRequest, assignment: int) -> HttpResponse:
    assignments.reopen_submission(
        assignment_id=assignment,
        rater_id=_own_rater_id(request, assignment),
        now=timezone.now(),
        by=_current_user(request),
    )
    return json_response(trace_payload.build_payload(assignment))


@require_POST
@refusals_as_json
def discard_correction(request: HttpRequest, assignment: int) -> HttpResponse:
    rater, batch = _own_rater_id(request, assignment), decode_body(request.body, WriteBatch)
    corrected = assignments.discard_correction(
        assignment_id=assignment,
        rater_id=rater,
        client=batch.client,
        writes=batch.writes,
        now=timezone.now(),
        by=_current_user(request),
    )
    return json_response({"state": corrected.state})


@require_POST
@refusals_as_json
def release_held(request: HttpRequest, slug: str) -> HttpResponse:
    """The page closes: what was only fetched ahead goes back. What is opened stays."""
    rater = get_object_or_404(Rater, project__slug=slug, user=_current_user(request))
    queue.release_held(rater_id=rater.pk, now=timezone.now(), reason="page closed", by=_current_user(request))
    return json_response({"state": "released"})


# Anything else, SVG above all, may carry scripts: it is not shown.
_IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}


@require_safe
def show_image(request: HttpRequest, part: int) -> HttpResponse:
    """An image of a trace that is, or was, in the asking person's hands."""
    mine = Assignment.objects.filter(rater__user=_current_user(request)).values("trace")
    found = get_object_or_404(
        OptionPart, pk=part, kind="image", media_type__in=_IMAGE_TYPES, option__step__trace__in=mine
    )
    return HttpResponse(found.data, content_type=found.media_type)
