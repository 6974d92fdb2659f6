"""Everything that is recorded of requests, for audits outside of the platform: one object per request."""

from collections.abc import Iterator
from typing import Any

from labeling.models import Project
from live.models import LiveOption, LiveTurn, OptionRequest

_PAGE = 200
_POLICY = ("version", "family", "model", "model_digest", "tokenizer_digest", "mode", "template_digest", "step_end")
_REQUEST = (
    *("path", "position", "has_human_steps", "is_prefetched", "prompt_digest", "seed", "sent", "state", "problem"),
    *("server_version", "served_model", "fingerprint", "n_returned", "dropped", "prompt_tokens", "completion_tokens"),
    *("is_usage_estimated", "milliseconds", "n_tries", "has_shown_scores"),
)
_PRM = ("version", "backend", "model", "digest")
_OPTION = ("index", "text", "ending", "finish_reason", "stop_reason", "same_as", "token_ids", "sum_logprob")


def describe_requests(project: Project) -> Iterator[dict[str, Any]]:
    """Yield the requests of all sessions of a project, trials left out, in the order in which they were made. Raters
    have their pseudonyms."""
    rows = OptionRequest.objects.filter(session__project=project, session__rater__isnull=False)
    rows = rows.select_related("session__policy", "session__problem", "session__rater", "prm")
    rows = rows.defer("answer", "prm__weights", "prm__trained").order_by("pk")
    for request in rows.iterator(chunk_size=_PAGE):
        yield _describe_request(request)


def _describe_request(request: OptionRequest) -> dict[str, Any]:
    session = request.session
    options = list(LiveOption.objects.filter(request=request).prefetch_related("edits").order_by("index"))
    turn = LiveTurn.objects.filter(request=request).select_related("chosen").first()
    return {
        "request": request.pk,
        "reference": request.reference,
        "session": session.pk,
        "rater": str(session.rater.pseudonym) if session.rater else None,
        "problem_digest": session.problem.digest,
        "policy": {name: getattr(session.policy, name) for name in _POLICY},
        "prm": request.prm and {name: getattr(request.prm, name) for name in _PRM},
        **{name: getattr(request, name) for name in _REQUEST},
        "money": float(request.money),
        "asked_at": _format_time(request.asked_at),
        "answered_at": _format_time(request.answered_at),
        "options": [_describe_option(option) for option in options],
        "turn": None if turn is None else _describe_turn(turn),
    }


def _describe_option(option: LiveOption) -> dict[str, Any]:
    rated = {"rating": option.rating, "flagged": option.flagged, "rated_at": _format_time(option.rated_at)}
    own = {"id": option.pk, "mean_logprob": option.mean_logprob}
    edits = [
        {
            "rating": edit.rating,
            "flagged": edit.flagged,
            "arrived_at": _format_time(edit.arrived_at),
            "was_applied": edit.was_applied,
        }
        for edit in sorted(option.edits.all(), key=lambda edit: edit.pk)
    ]
    return own | {name: getattr(option, name) for name in _OPTION} | rated | {"edits": edits}


def _describe_turn(turn: LiveTurn) -> dict[str, Any]:
    return {
        "shown": turn.shown,
        "order_seed": turn.order_seed,
        "shown_at": _format_time(turn.shown_at),
        "chosen": turn.chosen.index if turn.chosen else None,
        "written_text": turn.written_text,
        "ended_at": _format_time(turn.ended_at),
        "active_ms": turn.active_ms,
    }


def _format_time(moment: Any) -> str | None:
    return moment.isoformat() if moment else None
