"""The pages of live labeling: problems to begin or continue, and the session with its messages.

A refusal has a code and a message to display; the page keeps what was typed."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import msgspec
from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts import rate_limits
from accounts.sessions import UserRequest
from annotate import live_stage
from labeling import gates, queue
from labeling.gates import OnboardingGate
from labeling.models import Rater
from labeling.models.assignment import FinishReason
from labeling.models.project import Protocol
from labeling.projects import rating_rules
from live import answer_pool, policies, sessions
from live.models import LiveSession
from live.sessions import LiveRating, LiveRefusal, NoProblemLeft, TurnNotes

_Index = Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]
_Position = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
_StepText = Annotated[str, msgspec.Meta(max_length=sessions.MAX_STEP_CHARACTERS)]


class SentRating(msgspec.Struct):
    index: _Index
    rating: Annotated[int, msgspec.Meta(ge=-1, le=1)] | None = None
    flagged: bool = False


class LiveMessage(msgspec.Struct):
    """What the page sends about the turn at `position`. The other fields belong to single actions."""

    position: _Position
    ratings: Annotated[list[SentRating], msgspec.Meta(max_length=100)] = []
    draft: _StepText | None = None
    active_ms: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    index: _Index | None = None
    text: _StepText = ""
    ends_solution: bool = False
    reason: FinishReason | None = None
    note: Annotated[str, msgspec.Meta(max_length=sessions.MAX_NOTE_CHARACTERS)] = ""

    @property
    def notes(self) -> TurnNotes:
        ratings = [LiveRating(each.index, each.rating, each.flagged) for each in self.ratings]
        return TurnNotes(self.position, ratings, self.draft, self.active_ms)


def _refusals_as_json(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def wrapped(request: UserRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except msgspec.DecodeError as error:
            message = _("Invalid request: %(error)s") % {"error": error}
            return _json_response({"code": "invalid", "message": message}, 422)
        except LiveRefusal as refusal:
            return _json_response({"code": refusal.code, "message": str(refusal)}, 409)
        except rate_limits.TooManyRequests as error:
            content = {"code": "too_many_requests", "message": _("Too many changes at once. They will be sent later.")}
            response = _json_response(content, 429)
            response.headers["Retry-After"] = str(error.seconds)
            return response

    return wrapped


def _json_response(content: dict[str, Any], status: int = 200) -> HttpResponse:
    return JsonResponse(content, status=status)


@require_safe
@never_cache
def show_live(request: UserRequest, slug: str) -> HttpResponse:
    """Show the open session, or the problems to begin or continue."""
    rater = _own_rater(request, slug)
    session = sessions.find_current(rater)
    if session is not None:
        turn = sessions.show_options(session=session, now=timezone.now())
        answer_pool.start_requests(session=session, clock=timezone.now)
        context = live_stage.build_page(session, turn, request.user)
        return render(
            request, "annotate/live/session.html", context | {"rules": rating_rules.load_rating_rules(rater.project)}
        )
    if gates.next_gate(rater=rater, project=rater.project) != OnboardingGate.WORK:
        return redirect("annotate:enter", slug)
    policy = policies.find_open_policy(rater.project)
    context = {
        "project": rater.project,
        "aside": sessions.list_aside(rater),
        "has_problem": policy is not None and sessions.list_free_problems(rater, policy).exists(),
        "is_open": policy is not None,
        "reason": queue.ineligibility_reason(rater, rater.project),
    }
    return render(request, "annotate/live/start.html", context)


@require_POST
def begin_live(request: UserRequest, slug: str) -> HttpResponse:
    rater = _own_rater(request, slug)
    if refusal := rate_limits.limit_request(request, "claim", rater=rater.pk):
        return refusal
    try:
        session = sessions.begin_session(rater=rater, project=rater.project, by=request.user, now=timezone.now())
    except (queue.QueueRefusal, NoProblemLeft) as error:
        messages.warning(request, str(error))
    else:
        answer_pool.start_requests(session=session, clock=timezone.now)
    return redirect("annotate:live", slug)


@require_safe
@never_cache
def show_live_turn(request: UserRequest, session: int) -> HttpResponse:
    """Return the stage, for a page that waits for options."""
    return _stage_response(_own_session(request, session))


@require_POST
@_refusals_as_json
def record_live(request: UserRequest, session: int) -> HttpResponse:
    """Store ratings and the draft of a step, before anything is decided."""
    row = _own_session(request, session)
    message = _decode(request, row)
    sessions.record_notes(session=row, notes=message.notes, now=timezone.now())
    answer_pool.start_requests(session=row, clock=timezone.now)
    return _json_response({"position": message.position})


@require_POST
@_refusals_as_json
def choose_live(request: UserRequest, session: int) -> HttpResponse:
    row = _own_session(request, session)
    message = _decode(request, row)
    if message.index is None:
        raise LiveRefusal("unknown_option", _("Choose an option."))
    row = sessions.choose_option(
        session=row, notes=message.notes, index=message.index, by=request.user, now=timezone.now()
    )
    return _stage_response(row)


@require_POST
@_refusals_as_json
def write_live(request: UserRequest, session: int) -> HttpResponse:
    row = _own_session(request, session)
    message = _decode(request, row)
    row = sessions.write_step(
        session=row,
        notes=message.notes,
        text=message.text,
        ends_solution=message.ends_solution,
        by=request.user,
        now=timezone.now(),
    )
    return _stage_response(row)


@require_POST
@_refusals_as_json
def end_live(request: UserRequest, session: int) -> HttpResponse:
    row = _own_session(request, session)
    message = _decode(request, row)
    if message.reason is None:
        raise LiveRefusal("no_reason", _("Choose how the solution ends."))
    row = sessions.end_session(
        session=row,
        notes=message.notes,
        reason=message.reason,
        note=message.note,
        by=request.user,
        now=timezone.now(),
    )
    return _stage_response(row)


@require_POST
@_refusals_as_json
def put_live_aside(request: UserRequest, session: int) -> HttpResponse:
    row = _own_session(request, session)
    message = _decode(request, row)
    sessions.put_aside(session=row, notes=message.notes, now=timezone.now())
    return _stage_response(_own_session(request, session))


@require_POST
def resume_live(request: UserRequest, session: int) -> HttpResponse:
    row = _own_session(request, session)
    sessions.resume_session(session=row, now=timezone.now())
    return redirect("annotate:live", row.project.slug)


def _decode(request: UserRequest, session: LiveSession) -> LiveMessage:
    """Decode a message. Raises TooManyRequests beyond the quota of the rater or the session."""
    message = msgspec.json.decode(request.body, type=LiveMessage)
    units = {"writes": len(message.ratings) or 1, "write_bytes": len(request.body)}
    rate_limits.take(units, now=time.time(), rater=session.rater_id, assignment=f"live-{session.pk}")
    return message


def _stage_response(session: LiveSession) -> HttpResponse:
    """Return the stage as it is now, and ask for the options that it waits for."""
    turn = sessions.show_options(session=session, now=timezone.now())
    answer_pool.start_requests(session=session, clock=timezone.now)
    context = live_stage.build_stage(session, turn)
    html = render_to_string("annotate/live/stage.html", context | {"project": session.project})
    return _json_response({"state": context["state"], "position": turn.position, "html": html})


def _own_rater(request: UserRequest, slug: str) -> Rater:
    rows = Rater.objects.active().select_related("project__guideline")
    return get_object_or_404(rows, project__slug=slug, project__protocol=Protocol.LIVE, user=request.user)


def _own_session(request: UserRequest, session: int) -> LiveSession:
    rows = LiveSession.objects.select_related("policy", "problem", "project", "rater")
    row = rows.filter(pk=session, rater__user=request.user, rater__removed_at=None).first()
    if row is None:
        raise Http404
    return row
