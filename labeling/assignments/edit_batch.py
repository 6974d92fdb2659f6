"""A client's message as it comes in, and whether it can be one. Pure: knows no row."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from django.utils.translation import gettext as _

from labeling.assignments.errors import BatchRefused, EditRefused
from labeling.models.judgment import RatingEditKind

BATCH_LIMIT = 1000
TEXT_LIMIT = 20_000
CLIENT_LENGTH = 32
_MAX_INTEGER = 2**31 - 1
_MAX_OPTION = 2**15 - 1
_DAY_MS = 24 * 60 * 60 * 1000


class IncomingEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says happened: `rate` and `undo` name an option, `choose` the option that the path goes on with."""

    sequence: int  # grows by one with each write of the client
    seen: int  # the assignment's version that the client knew when the rater did it
    kind: str
    step: int  # position
    option: int | None = None  # position
    rating: int | None = None  # for `undo` the former one, which may be none
    flagged: bool | None = None
    category: str = ""
    text: str = ""  # the reason of a rating, the own step, the comment
    active_ms: int = 0
    made_at: dt.datetime | None = None

    @property
    def cell(self) -> "EditTarget":
        part = PARTS[self.kind]
        return EditTarget(part, self.step, self.option if part == "rating" else None)


class EditTarget(NamedTuple):
    """What a write is about. Clients meet in a cell; writes about different cells never touch each other."""

    part: str
    step: int
    option: int | None


class EditBatch(NamedTuple):
    """What one client sends at once."""

    assignment_id: int
    rater_id: int
    client: str
    writes: tuple[IncomingEdit, ...]


PARTS: dict[str, str] = {
    RatingEditKind.RATE.value: "rating",
    RatingEditKind.UNDO.value: "rating",
    RatingEditKind.CHOOSE.value: "chosen",
    RatingEditKind.WRITE_STEP.value: "written",
    RatingEditKind.COMMENT.value: "comment",
}


def validate_batch(assignment_id: int, rater_id: int, client: str, writes: Sequence[IncomingEdit]) -> EditBatch:
    """The batch; refused when it has a write that no row could hold, and then it says which."""
    if not 0 < len(client) <= CLIENT_LENGTH or not _is_storable_text(client):
        raise BatchRefused(_("A client's id has 1 to %(most)d characters.") % {"most": CLIENT_LENGTH})
    if len(writes) > BATCH_LIMIT:
        raise BatchRefused(_("A batch has at most %(most)d writes.") % {"most": BATCH_LIMIT})
    known: set[int] = set()
    for index, write in enumerate(writes):
        fault = _find_fault(write) or (("sequence", _("this number came twice")) if write.sequence in known else None)
        if fault:
            refuse_edit(write, index, *fault)
        known.add(write.sequence)
    return EditBatch(assignment_id, rater_id, client, tuple(writes))


def validate_reason(reason: str) -> str:
    """What a rater says of a trace as a whole; refused when no row could hold it."""
    if len(reason) > TEXT_LIMIT:
        raise BatchRefused(_("The reason is longer than %(limit)d characters.") % {"limit": TEXT_LIMIT})
    if not _is_storable_text(reason):
        raise BatchRefused(_("The reason holds a character that cannot be kept (NUL or half of a pair)."))
    return reason


def refuse_edit(write: IncomingEdit, index: int, field: str, why: str) -> None:
    message = _("Step %(step)d: %(why)s.") % {"step": write.step + 1, "why": why}
    raise EditRefused(message, index=index, sequence=write.sequence, field=field)


def _find_fault(write: IncomingEdit) -> tuple[str, str] | None:
    if write.kind not in PARTS:
        return "kind", _("%(kind)s is nothing that can be done") % {"kind": write.kind[:40]}
    return _find_number_fault(write) or _find_text_fault(write)


def _find_number_fault(write: IncomingEdit) -> tuple[str, str] | None:
    if write.rating is not None and write.rating not in (-1, 0, 1):
        return "rating", _("%(rating)s is not a rating; use -1, 0 or 1") % {"rating": write.rating}
    if PARTS[write.kind] == "rating" and write.option is None:
        return "option", _("a rating names the option that it is for")
    for field, value, least, most in (
        ("sequence", write.sequence, 1, _MAX_INTEGER),
        ("seen", write.seen, 0, _MAX_INTEGER),
        ("step", write.step, 0, _MAX_INTEGER),
        ("option", write.option or 0, 0, _MAX_OPTION),
        ("active_ms", write.active_ms, 0, _DAY_MS),
    ):
        if not least <= value <= most:
            return field, _("%(field)s is out of range") % {"field": field}
    return None


def _find_text_fault(write: IncomingEdit) -> tuple[str, str] | None:
    if len(write.category) > 40:
        return "category", _("the kind of error is longer than 40 characters")
    if len(write.text) > TEXT_LIMIT:
        return "text", _("the text is longer than %(limit)d characters") % {"limit": TEXT_LIMIT}
    if not _is_storable_text(write.text) or not _is_storable_text(write.category):
        return "text", _("the text holds a character that cannot be kept (NUL or half of a pair)")
    return None


def _is_storable_text(text: str) -> bool:
    """Neither NUL nor a lone surrogate: refused alike on both engines."""
    try:
        return "\x00" not in text and (text.isascii() or bool(text.encode()))
    except UnicodeEncodeError:
        return False
