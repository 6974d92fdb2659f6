"""A batch of edits as a client sends it, and whether it can be stored at all. Pure."""

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
    """One action of a rater. `rate` and `undo` name an option, `choose` the option that the path continues with."""

    sequence: int  # grows by one with each edit of the client
    seen: int  # the assignment's version that the client knew at the time
    kind: str
    step: int  # position
    option: int | None = None  # position
    rating: int | None = None  # for `undo` the previous one, if any
    flagged: bool | None = None
    category: str = ""
    text: str = ""  # the reason of a rating, the rater's own step, or the comment
    active_ms: int = 0
    made_at: dt.datetime | None = None

    @property
    def target(self) -> "EditTarget":
        part = PARTS[self.kind]
        return EditTarget(part, self.step, self.option if part == "rating" else None)


class EditTarget(NamedTuple):
    """What an edit changes. Edits of different targets never conflict."""

    part: str
    step: int
    option: int | None


class EditBatch(NamedTuple):
    """A message of one client."""

    assignment_id: int
    rater_id: int
    client: str
    edits: tuple[IncomingEdit, ...]


PARTS: dict[str, str] = {
    RatingEditKind.RATE.value: "rating",
    RatingEditKind.UNDO.value: "rating",
    RatingEditKind.CHOOSE.value: "chosen",
    RatingEditKind.WRITE_STEP.value: "written",
    RatingEditKind.COMMENT.value: "comment",
}


def validate_batch(assignment_id: int, rater_id: int, client: str, edits: Sequence[IncomingEdit]) -> EditBatch:
    """Return the batch. Raises BatchRefused or EditRefused for values that no row can store."""
    if not 0 < len(client) <= CLIENT_LENGTH or not _is_storable_text(client):
        raise BatchRefused(_("The id of a client must have 1 to %(limit)d characters.") % {"limit": CLIENT_LENGTH})
    if len(edits) > BATCH_LIMIT:
        raise BatchRefused(_("A batch can have at most %(limit)d edits.") % {"limit": BATCH_LIMIT})
    sequences: set[int] = set()
    for index, edit in enumerate(edits):
        fault = _find_fault(edit) or (
            ("sequence", _("another edit has the same sequence number")) if edit.sequence in sequences else None
        )
        if fault:
            refuse_edit(edit, index, *fault)
        sequences.add(edit.sequence)
    return EditBatch(assignment_id, rater_id, client, tuple(edits))


def validate_reason(reason: str) -> str:
    """Return the rater's reason for ending a trace. Raises BatchRefused if no row can store it."""
    if len(reason) > TEXT_LIMIT:
        raise BatchRefused(_("The reason is longer than %(limit)d characters.") % {"limit": TEXT_LIMIT})
    if not _is_storable_text(reason):
        raise BatchRefused(_("The reason contains an invalid character (NUL or an unpaired surrogate)."))
    return reason


def refuse_edit(edit: IncomingEdit, index: int, field: str, fault: str) -> None:
    message = _("Step %(step)d: %(fault)s.") % {"step": edit.step + 1, "fault": fault}
    raise EditRefused(message, index=index, sequence=edit.sequence, field=field)


def _find_fault(edit: IncomingEdit) -> tuple[str, str] | None:
    if edit.kind not in PARTS:
        return "kind", _("unknown kind of edit %(kind)s") % {"kind": edit.kind[:40]}
    return _find_number_fault(edit) or _find_text_fault(edit)


def _find_number_fault(edit: IncomingEdit) -> tuple[str, str] | None:
    if edit.rating is not None and edit.rating not in (-1, 0, 1):
        return "rating", _("%(rating)s is not a rating; use -1, 0 or 1") % {"rating": edit.rating}
    if PARTS[edit.kind] == "rating" and edit.option is None:
        return "option", _("a rating must name its option")
    for field, value, least, most in (
        ("sequence", edit.sequence, 1, _MAX_INTEGER),
        ("seen", edit.seen, 0, _MAX_INTEGER),
        ("step", edit.step, 0, _MAX_INTEGER),
        ("option", edit.option or 0, 0, _MAX_OPTION),
        ("active_ms", edit.active_ms, 0, _DAY_MS),
    ):
        if not least <= value <= most:
            return field, _("%(field)s is out of range") % {"field": field}
    return None


def _find_text_fault(edit: IncomingEdit) -> tuple[str, str] | None:
    if len(edit.category) > 40:
        return "category", _("the error category is longer than 40 characters")
    if len(edit.text) > TEXT_LIMIT:
        return "text", _("the text is longer than %(limit)d characters") % {"limit": TEXT_LIMIT}
    if not _is_storable_text(edit.text) or not _is_storable_text(edit.category):
        return "text", _("the text contains an invalid character (NUL or an unpaired surrogate)")
    return None


def _is_storable_text(text: str) -> bool:
    """Return whether PostgreSQL can store the text: no NUL and no unpaired surrogate."""
    try:
        return "\x00" not in text and (text.isascii() or bool(text.encode()))
    except UnicodeEncodeError:
        return False
