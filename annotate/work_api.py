"""What the work page's scripts send and are answered. Every answer is JSON; a refusal says what happened in words that
can be shown, and where."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from labeling import assignments, queue

_BodyType = TypeVar("_BodyType")


class WriteBatch(msgspec.Struct, kw_only=True):
    """Writes of one client, and what a farewell adds to them."""

    client: str
    writes: list[assignments.IncomingEdit] = []
    reason: str = ""
    revision: int | None = None  # the one that the rater was at work on
    active_ms: int = 0  # since the last write


class ClaimMessage(msgspec.Struct, kw_only=True):
    opened: bool = False


def decode_body(body: bytes, kind: type[_BodyType]) -> _BodyType:
    return msgspec.json.decode(body or b"{}", type=kind)


def json_response(content: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(content), status=status, content_type="application/json")


def json_refusal(status: int, code: str, message: str, **more: Any) -> HttpResponse:
    return json_response({"code": code, "message": message, **more}, status)


def describe_lost_writes(lost: tuple[assignments.LostEdit, ...]) -> list[dict[str, Any]]:
    """Writes that do not stand, each with what stands there."""
    return [
        {
            "sequence": each.sequence,
            "part": each.target.part,
            "step": each.target.step,
            "option": each.target.option,
            "stands": {**each.judgment._asdict(), "comment": each.review.comment},
        }
        for each in lost
    ]


def refusals_as_json(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Refusals of the verbs become answers with a status that the scripts sort by."""

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **named: Any) -> HttpResponse:
        try:
            return view(request, *args, **named)
        except msgspec.DecodeError as error:
            return json_refusal(422, "invalid", _("The message cannot be read: %(error)s") % {"error": error})
        except assignments.AssignmentError as error:
            return _refuse_judging_error(error)
        except queue.OnboardingRequired as error:
            return json_refusal(409, _error_code(error), str(error), station=error.gate)
        except queue.QueueRefusal as error:
            return json_refusal(409, _error_code(error), str(error))

    return answered


def _refuse_judging_error(error: assignments.AssignmentError) -> HttpResponse:
    if isinstance(error, assignments.AssignmentUnknown):
        return json_refusal(404, "unknown", str(error))
    if isinstance(error, assignments.EditRefused):
        return json_refusal(
            422, "write_refused", str(error), index=error.index, sequence=error.sequence, field=error.field
        )
    if isinstance(error, assignments.ConflictingEdits):
        return json_refusal(409, "others_stand", str(error), lost=describe_lost_writes(error.lost))
    return json_refusal(409, _error_code(error), str(error))


def _error_code(error: Exception) -> str:
    """NothingLeft -> nothing_left."""
    name = type(error).__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
