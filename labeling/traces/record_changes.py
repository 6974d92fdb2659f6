"""Split and merge the steps of records in the preview of an import.

The changes are part of the options of the import. They name a record by its number in the file, and have a digest of
the steps that the person saw: an import stops if the file or the segmenter gives other steps, so no change is lost.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from django.utils.translation import gettext as _
from msgspec import Struct

from formats import input_files
from formats.records import LIVE, BadLine, ProvenanceRecord, StepChange, StepRecord, TraceRecord
from formats.step_changes import (
    MAX_STEPS,
    InvalidStepChange,
    change_steps,
    digest_steps,
    name_changed_segmenter,
)


class CannotChangeSteps(Exception):
    """The steps of the trace cannot be changed. The message is meant for users."""

    def __init__(self, message: str, code: str) -> None:
        self.code = code
        super().__init__(message)


class StepsDiffer(input_files.UnreadableFile):
    """A record does not have the steps that were changed in the preview."""


class RecordChanges(Struct, frozen=True, forbid_unknown_fields=True):
    """The changes of one record."""

    record: int  # its number in the file, from 0; bad lines count
    line: int
    digest: str  # of the steps before the changes
    changes: tuple[StepChange, ...]


def apply_changes(steps: Sequence[StepRecord], changes: Iterable[StepChange]) -> list[StepRecord]:
    """Return the steps after the changes. Raises `CannotChangeSteps`."""
    changes = list(changes)
    refuse_long(len(steps) + sum(len(change.cuts) - change.merges for change in changes))
    try:
        return change_steps(steps, changes)
    except InvalidStepChange as error:
        number = sum(step.is_rateable for step in steps[: error.position]) + 1
        reasons = {
            "no_such_step": _("Step %(n)d does not exist. Reload the page."),
            "cannot_merge": _("Step %(n)d cannot be merged with the step before it: their kind or message differs."),
            "cannot_split": _("Step %(n)d cannot be split: it has alternatives or tool calls."),
            "empty_step": _("Step %(n)d cannot be split there: a new step would be empty. Move the mark."),
        }
        raise CannotChangeSteps(reasons[error.code] % {"n": number}, error.code) from None


def refuse_long(n_steps: int) -> None:
    if n_steps > MAX_STEPS:
        message = _("The trace has more than %(n)d steps, too many to change by hand. Import it with a segmenter.")
        raise CannotChangeSteps(message % {"n": MAX_STEPS}, "too_many_steps")


def refuse_fixed_record(record: TraceRecord) -> None:
    """Raise `CannotChangeSteps` if the steps of a record cannot be changed before its import."""
    if record.kind == LIVE:
        raise CannotChangeSteps(_("The steps were generated during labeling and cannot be changed."), "live")
    if any(submission.turns for submission in record.submissions):
        message = _("The file has ratings of these steps, so they cannot be changed. Import it without ratings.")
        raise CannotChangeSteps(message, "rated")
    refuse_long(len(record.steps))


def change_record(record: TraceRecord, own: RecordChanges) -> TraceRecord:
    """Return the record with the changed steps. Raises `CannotChangeSteps`."""
    if digest_steps(record.steps) != own.digest:
        raise CannotChangeSteps(_("The record has other steps now."), "other_steps")
    refuse_fixed_record(record)
    steps = apply_changes(record.steps, own.changes)
    made = record.provenance or ProvenanceRecord()
    return msgspec.structs.replace(
        record,
        steps=steps,
        provenance=msgspec.structs.replace(made, segmenter=name_changed_segmenter(made.segmenter)),
        step_changes=own.changes,
        residue=None,
        original=None,  # it has the old steps
    )


def change_records(
    records: Iterable[TraceRecord | BadLine], planned: Iterable[RecordChanges]
) -> Iterator[TraceRecord | BadLine]:
    """Yield all records of a file, with the planned changes. Raises `StepsDiffer` for changes that cannot be applied,
    also if the file ends before their record, or the record is bad."""
    by_record = {each.record: each for each in planned}
    for number, record in enumerate(records):
        own = None if isinstance(record, BadLine) else by_record.pop(number, None)
        if own is None or isinstance(record, BadLine):
            yield record
            continue
        try:
            yield change_record(record, own)
        except CannotChangeSteps as error:
            raise StepsDiffer(_explain_lost(own)) from error
    for own in by_record.values():
        raise StepsDiffer(_explain_lost(own))


def _explain_lost(own: RecordChanges) -> str:
    message = _(
        "The record in line %(line)d no longer has the steps that were changed in the preview, so nothing was"
        " imported. Preview the file again."
    )
    return message % {"line": own.line}
