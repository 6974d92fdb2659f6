"""The work page and the requests of its scripts. A refusal has a code and a message to display."""

import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, Literal

import msgspec
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_POST, require_safe

import rawsql
from accounts import rate_limits
from accounts.sessions import UserRequest
from annotate import keys, todo, work_page, work_summary
from annotate.views import day
from formats import integers
from labeling import assignments, gates, onboarding, queue, raters
from labeling.gates import OnboardingGate
from labeling.models import Assignment, Rater, StoredImage, Submission
from labeling.models.project import Protocol
from labeling.projects import protocols, rating_rules, visibility
from live.models import LiveSession
from people.models import MemberMessage


@require_safe
@gzip_page  # Django adds random bytes, so that the length reveals nothing (BREACH)
@never_cache  # Back, a restored tab and a link would show a trace as it once was
def show_work_page(request: UserRequest, slug: str) -> HttpResponse:
    user = request.user
    rater = get_object_or_404(Rater.objects.select_related("project__guideline"), project__slug=slug, user=user)
    if rater.project.protocol == Protocol.LIVE and gates.next_gate(rater=rater, project=rater.project) not in (
        OnboardingGate.TRAINING,
        OnboardingGate.SCREENING,
    ):
        return redirect("annotate:live", slug)
    opened = _assignment_to_show(request, rater)
    if opened is not None and Assignment.objects.submitted().filter(pk=opened, reopened_at=None).exists():
        if not request.GET.get("assignment"):
            return redirect(request.path)  # submitted a moment ago, by a page that is being closed
        return redirect("annotate:submitted_one", opened)
    if opened is None and gates.next_gate(rater=rater, project=rater.project) not in gates.GATES_WITH_TRACES:
        return redirect("annotate:enter", slug)
    context = {
        "project": rater.project,
        "config": work_page.build_config(user, rater, now=timezone.now()),
        "first_trace": work_page.build_trace(opened) if opened else None,
        "today": work_summary.summarize_day(user, timezone.now()),
        "break_choices": day.BREAK_CHOICES,
        "asked": todo.list_asked_assignments(rater),
        "reopened_requests": todo.list_reopened_requests(user, slug),
        "reclaimed": todo.list_reclaimed(user, slug, exclude=opened),
        "message": MemberMessage.objects.unread_in(rater.project, user),
        "severities": rating_rules.name_severities(rater.project).items(),
        "later_steps": protocols.describe_later_steps(rater.project.protocol),
        "rules": rating_rules.load_rating_rules(rater.project),
        "keys": keys.load_keys(user),
    }
    return render(request, "annotate/work.html", context)


def _assignment_to_show(request: UserRequest, rater: Rater) -> int | None:
    """Return the requested assignment (to correct it, or after it was reclaimed), else the one opened last."""
    if requested := request.GET.get("assignment"):
        return get_object_or_404(Assignment, rater=rater, pk=integers.parse_integer(requested)).pk
    return _find_opened_assignment(rater.pk)


def _find_opened_assignment(rater: int, exclude: Sequence[int] = ()) -> int | None:
    """Return the assignment opened last."""
    rows = rawsql.fetch_rows(_LAST_OPENED, {"rater": rater, "excluded": list(exclude)})
    return rows[0][0] if rows else None


_LAST_OPENED = """
SELECT id FROM labeling_assignment
WHERE rater_id = %(rater)s AND state = 'opened' AND id <> ALL (%(excluded)s::bigint[])
ORDER BY opened_at DESC LIMIT 1"""
_AssignmentId = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


IMAGE_SECONDS = 365 * 24 * 3600  # an image never changes


class NextTraceWish(msgspec.Struct, kw_only=True):
    """The page wants another trace, held, with the answer."""

    shown: list[_AssignmentId] = []  # as in ClaimMessage


class WriteBatch(msgspec.Struct, kw_only=True):
    """Edits of one client. `opens` and `next` spare the page requests of their own. The other optional fields belong to
    a submit, skip, give-up or report."""

    client: str
    writes: list[assignments.IncomingEdit] = []
    reason: str = ""
    revision: int | None = None  # the revision the rater worked on
    active_ms: int = 0  # active time since the last edit
    promise: assignments.SubmitPromise | None = None  # what the page showed
    opens: _AssignmentId | None = None  # a held assignment that the page shows by now
    next: NextTraceWish | None = None

    def ending(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _ENDING_FIELDS}


_ENDING_FIELDS = ("client", "writes", "reason", "revision", "active_ms", "promise")


class ClaimMessage(msgspec.Struct, kw_only=True):
    opened: bool = False
    shown: list[_AssignmentId] = []  # assignments that the page shows, or whose ending it has yet to send


def _decode_batch(request: UserRequest, own: dict[str, Any]) -> WriteBatch:
    """Decode the edits of an assignment. Raises TooManyRequests beyond the quota of the rater or the assignment."""
    batch = msgspec.json.decode(request.body or b"{}", type=WriteBatch)
    units = {"writes": len(batch.writes) or 1, "write_bytes": len(request.body)}
    rate_limits.take(units, now=time.time(), rater=own["rater_id"], assignment=own["assignment_id"])
    return batch


def _json_response(content: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(content), status=status, content_type="application/json")


def _refusals_as_json(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Turn the domain's refusals into JSON with the status that the scripts expect."""

    @wraps(view)
    def wrapped(request: UserRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except msgspec.DecodeError as error:
            message = _("Invalid request: %(error)s") % {"error": error}
            return _json_response({"code": "invalid", "message": message}, 422)
        except (assignments.AssignmentError, queue.QueueRefusal) as error:
            return _describe_refusal(error)
        except rate_limits.TooManyRequests as error:
            content = {"code": "too_many_requests", "message": _("Too many changes at once. They will be sent later.")}
            response = _json_response(content, 429)
            response.headers["Retry-After"] = str(error.seconds)
            return response

    return wrapped


def _describe_refusal(error: Exception) -> HttpResponse:
    name = type(error).__name__  # NothingLeft -> nothing_left
    code = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
    status, more = 409, {}
    match error:
        case assignments.AssignmentUnknown():
            status, code = 404, "unknown"
        case assignments.EditRefused():
            status, code = 422, "write_refused"
            more = {"index": error.index, "sequence": error.sequence, "field": error.field}
        case assignments.ConflictingEdits():
            more = {"lost": _describe_lost_edits(error.lost)}
        case queue.OnboardingRequired():
            more = {"gate": error.gate}
    return _json_response({"code": code, "message": str(error), **more}, status)


def _describe_lost_edits(lost: tuple[assignments.LostEdit, ...]) -> list[dict[str, Any]]:
    """Describe edits that a newer edit overruled, each with the current values."""
    return [
        {
            "sequence": each.sequence,
            "part": each.target.part,
            "step": each.target.step,
            "option": each.target.option,
            "current": {**each.judgment._asdict(), "comment": each.review.comment},
        }
        for each in lost
    ]


def _own_assignment(request: UserRequest, assignment: int) -> dict[str, Any]:
    """Return arguments for functions of the domain: the user's own assignment, its rater and the time."""
    rater = raters.find_rater_id_of_assignment(assignment_id=assignment, user_id=request.user.pk)
    if rater is None:
        raise assignments.AssignmentUnknown
    return {"assignment_id": assignment, "rater_id": rater, "now": timezone.now()}


@require_POST
@_refusals_as_json
def claim(request: UserRequest, slug: str) -> HttpResponse:
    rater = raters.find_rater_id(slug=slug, user_id=request.user.pk)
    if rater is None:
        raise Http404
    message = msgspec.json.decode(request.body or b"{}", type=ClaimMessage)
    trace = _claim_trace(request, rater, opened=message.opened, shown=message.shown)
    return _json_response(trace)


def _claim_trace(request: UserRequest, rater: int, *, opened: bool, shown: Sequence[int]) -> dict[str, Any]:
    """Return a trace with the news. An open one comes before a new one: a rater finishes what another page or tab
    began."""
    rate_limits.take({"claim": 1}, now=time.time(), rater=rater)
    now = timezone.now()
    claimed = queue.claim_next(rater_id=rater, now=now, opened=opened, besides=shown)
    assignment = claimed.assignment_id if claimed else _find_opened_assignment(rater, exclude=shown)
    if assignment is None:
        assignment = onboarding.claim_trace(rater_id=rater, by=request.user, now=now, opened=opened).assignment_id
    raters.remember_owner(assignment_id=assignment, user_id=request.user.pk, rater_id=rater)
    return work_page.build_trace(assignment)


def _grant_wishes(
    request: UserRequest, own: dict[str, Any], batch: WriteBatch, *, opened: int | None = None
) -> dict[str, Any]:
    """Open the trace that the page shows by now, and hold the next one for the rater, if the page wants that. `opened`
    is the new version of the trace if it is open already.

    The rest of the message is stored already, so a refusal is no error here: the page then asks with a request of its
    own, which names the reason."""
    rater: int = own["rater_id"]
    granted: dict[str, Any] = {}
    if batch.opens is not None:
        granted["opened"] = opened or queue.open_held(assignment_id=batch.opens, rater_id=rater, now=own["now"])
    if batch.next is not None:
        try:
            granted["next"] = _claim_trace(request, rater, opened=False, shown=batch.next.shown)
        except (queue.QueueRefusal, rate_limits.TooManyRequests):
            granted["next"] = None
    if granted.get("next"):
        granted["news"] = granted["next"].pop("news")
    elif granted:
        granted["news"] = work_page.describe_news(rater)
    return granted


@require_safe
@never_cache
@_refusals_as_json
def send_trace(request: UserRequest, assignment: int) -> HttpResponse:
    _own_assignment(request, assignment)
    return _json_response(work_page.build_trace(assignment))


@require_POST
@_refusals_as_json
def open_held(request: UserRequest, assignment: int) -> HttpResponse:
    opened = queue.open_assignment(**_own_assignment(request, assignment))
    return _json_response({"state": opened.state, "version": opened.version, "lease_ends_at": opened.lease_ends_at})


@require_POST
@_refusals_as_json
def keep(request: UserRequest, assignment: int) -> HttpResponse:
    return _json_response({"lease_ends_at": queue.keep_assignment(**_own_assignment(request, assignment))})


@require_POST
@_refusals_as_json
def record(request: UserRequest, assignment: int) -> HttpResponse:
    own = _own_assignment(request, assignment)
    batch = _decode_batch(request, own)
    recorded = assignments.record_edits(**own, client=batch.client, writes=batch.writes)
    return _json_response(
        {
            "version_before": recorded.version_before,
            "version": recorded.version,
            "state": recorded.state,
            "is_late": recorded.is_late,
            "lease_ends_at": recorded.lease_ends_at,
            "lost": _describe_lost_edits(recorded.lost),
            **_grant_wishes(request, own, batch),
        }
    )


class FirstAnswer(msgspec.Struct, kw_only=True):
    """The rater's own answer to a step, whose label by the machine the page asks for."""

    step: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    rating: Literal[-1, 0, 1]


@require_POST
@_refusals_as_json
def reveal(request: UserRequest, assignment: int) -> HttpResponse:
    own = _own_assignment(request, assignment)
    answer = msgspec.json.decode(request.body or b"{}", type=FirstAnswer)
    units = {"writes": 1, "write_bytes": len(request.body)}
    rate_limits.take(units, now=time.time(), rater=own["rater_id"], assignment=own["assignment_id"])
    return _json_response({"label": assignments.reveal_label(**own, step=answer.step, rating=answer.rating)})


@require_POST
@_refusals_as_json
def submit(request: UserRequest, assignment: int) -> HttpResponse:
    return _finish(request, assignment, assignments.submit)


@require_POST
@_refusals_as_json
def give_up(request: UserRequest, assignment: int) -> HttpResponse:
    return _finish(request, assignment, assignments.give_up)


@require_POST
@_refusals_as_json
def report_problem(request: UserRequest, assignment: int) -> HttpResponse:
    return _finish(request, assignment, assignments.report_problem)


def _finish(request: UserRequest, assignment: int, verb: Callable[..., Submission]) -> HttpResponse:
    """Record the remaining edits and end the assignment with `verb`."""
    own = _own_assignment(request, assignment)
    batch = _decode_batch(request, own)
    submission = verb(**own, **batch.ending(), opens=batch.opens, by=request.user)
    content = {"state": "submitted", "revision": submission.revision, "finish_reason": submission.finish_reason}
    return _json_response(content | _grant_wishes(request, own, batch, opened=submission.opened_version))


@require_POST
@_refusals_as_json
def skip(request: UserRequest, assignment: int) -> HttpResponse:
    own = _own_assignment(request, assignment)
    batch = _decode_batch(request, own)
    assignments.skip_trace(**own, client=batch.client, writes=batch.writes, reason=batch.reason, by=request.user)
    return _json_response({"state": "released", **_grant_wishes(request, own, batch)})


@require_POST
@_refusals_as_json
def reopen(request: UserRequest, assignment: int) -> HttpResponse:
    assignments.reopen_submission(**_own_assignment(request, assignment), by=request.user)
    return _json_response(work_page.build_trace(assignment))


@require_POST
@_refusals_as_json
def discard_correction(request: UserRequest, assignment: int) -> HttpResponse:
    own = _own_assignment(request, assignment)
    batch = _decode_batch(request, own)
    seen = batch.promise.seen if batch.promise else None
    corrected = assignments.discard_correction(
        **own, client=batch.client, writes=batch.writes, seen=seen, by=request.user
    )
    return _json_response({"state": corrected.state, **_grant_wishes(request, own, batch)})


@require_POST
@_refusals_as_json
def release_held(request: UserRequest, slug: str) -> HttpResponse:
    """Return prefetched traces to the queue when the page closes. Opened traces stay assigned."""
    rater = get_object_or_404(Rater, project__slug=slug, user=request.user)
    queue.release_held(rater_id=rater.pk, now=timezone.now(), reason="page closed", by=request.user)
    return _json_response({"state": "released"})


@require_safe
@cache_control(private=True, max_age=IMAGE_SECONDS, immutable=True)
def show_image(request: UserRequest, image: str) -> HttpResponse:
    """Serve an image of a trace that is or was assigned to the user, or of the problem of a live session. Its address
    has the digest, because the number would tell in which file it came: known answers often come in one of their
    own."""
    stored = StoredImage.objects.filter(digest=image, project__raters__user=request.user).order_by("pk")
    for key in stored.values_list("pk", flat=True):
        is_live = LiveSession.objects.filter(rater__user=request.user, problem__images__image=key).exists
        if visibility.may_see_image(user_id=request.user.pk, image_id=key) or is_live():
            return HttpResponse(StoredImage.objects.get(pk=key).data, content_type="image/png")
    raise Http404
