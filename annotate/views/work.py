"""The work page and the requests of its scripts."""

from collections.abc import Callable
from typing import cast

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import client_strings, completion, keys, notices, trace_payload, work_api
from annotate.work_api import ClaimMessage, WriteBatch, decode_body, json_response, refusals_as_json
from formats import integers
from labeling import assignments, gates, onboarding, queue, raters
from labeling.models import Assignment, OptionPart, Rater, Submission
from labeling.models.assignment import AssignmentState
from people.models import MemberMessage


def _current_user(request: HttpRequest) -> User:
    return cast(User, request.user)


def _own_rater_id(request: HttpRequest, assignment: int) -> int:
    """Return the assignment's rater if it is the user, else raise AssignmentUnknown."""
    rater = raters.find_rater_id_of_assignment(assignment_id=assignment, user_id=_current_user(request).pk)
    if rater is None:
        raise assignments.AssignmentUnknown
    return rater


@require_safe
def show_work_page(request: HttpRequest, slug: str) -> HttpResponse:
    user = _current_user(request)
    rater = get_object_or_404(Rater.objects.select_related("project__guideline"), project__slug=slug, user=user)
    opened = _assignment_to_show(request, rater)
    if opened is not None and _is_submitted(opened):
        return redirect("annotate:submitted_one", opened)
    if opened is None and gates.next_gate(rater=rater, project=rater.project) not in gates.GATES_WITH_TRACES:
        return redirect("annotate:enter", slug)
    context = {
        "project": rater.project,
        "guideline": rater.project.guideline,
        "guideline_url": reverse("annotate:guideline", args=[slug]),
        "offers_completion": completion.is_offered(rater.project),
        "config": client_strings.work_page_config(request, rater.project),
        "first_trace": trace_payload.build_payload(opened) if opened else None,
        "reopened_requests": notices.list_reopened_requests(user, slug),
        "reclaimed": notices.list_reclaimed(user, slug, exclude=opened),
        "message": MemberMessage.objects.unread_in(rater.project, user),
        "error_categories": client_strings.error_categories(),
        "keys": keys.load_keys(user),
    }
    return render(request, "annotate/work.html", context)


def _assignment_to_show(request: HttpRequest, rater: Rater) -> int | None:
    """Return the requested assignment (to correct it, or after it was reclaimed), else the one opened last."""
    own = Assignment.objects.filter(rater=rater)
    if requested := request.GET.get("assignment"):
        return get_object_or_404(own, pk=integers.parse_integer(requested)).pk
    return own.filter(state=AssignmentState.OPENED).order_by("-opened_at").values_list("pk", flat=True).first()


def _is_submitted(assignment: int) -> bool:
    """Whether the assignment is submitted and not being corrected."""
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
    """Record the remaining edits and end the assignment with `verb`."""
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
    return json_response(
        {"state": "submitted", "revision": submission.revision, "finish_reason": submission.finish_reason}
    )


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
    """Return prefetched traces to the queue when the page closes. Opened traces stay assigned."""
    rater = get_object_or_404(Rater, project__slug=slug, user=_current_user(request))
    queue.release_held(rater_id=rater.pk, now=timezone.now(), reason="page closed", by=_current_user(request))
    return json_response({"state": "released"})


# Other types, SVG above all, can contain scripts and are not served.
_IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}


@require_safe
def show_image(request: HttpRequest, part: int) -> HttpResponse:
    """Serve an image of a trace that is or was assigned to the user."""
    traces = Assignment.objects.filter(rater__user=_current_user(request)).values("trace")
    image = get_object_or_404(
        OptionPart, pk=part, kind="image", media_type__in=_IMAGE_TYPES, option__step__trace__in=traces
    )
    return HttpResponse(image.data, content_type=image.media_type)
