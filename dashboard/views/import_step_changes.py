"""Steps of one previewed record as texts with marks. The changes are kept in a hidden field of the import options."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from dashboard.render import project_page
from dashboard.step_editor import build_editable_steps, choose_step_mark, read_step_changes, write_step_changes
from formats.records import TraceRecord
from formats.step_changes import digest_steps
from labeling.traces.import_preview import ImportPreview
from labeling.traces.locations import FileLocation
from labeling.traces.record_changes import CannotChangeSteps, RecordChanges, change_record, refuse_fixed_record
from people.models import Membership

MAX_CHANGES = 200_000  # characters of JSON


class StepChangesField(forms.CharField):
    """The changes of steps as JSON, from the page that a person has seen."""

    widget = forms.HiddenInput

    def __init__(self) -> None:
        super().__init__(required=False, max_length=MAX_CHANGES)

    def clean(self, value: object) -> list[RecordChanges]:
        text = super().clean(value)
        try:
            return msgspec.json.decode(text or "[]", type=list[RecordChanges])
        except msgspec.DecodeError as error:
            message = _("The changed steps cannot be read. Change them again.")
            raise ValidationError(message, code="changes_unreadable") from error


class PreviewedChanges(NamedTuple):
    """The records of a preview by number, with their changed steps, and the changes that no longer fit."""

    records: dict[int, TraceRecord]
    misfits: list[RecordChanges]


def apply_planned_changes(preview: ImportPreview, planned: Sequence[RecordChanges]) -> PreviewedChanges:
    records = dict(zip(preview.numbers, preview.first, strict=False))
    misfits: list[RecordChanges] = []
    for own in planned:
        try:
            records[own.record] = change_record(records[own.record], own)
        except (KeyError, CannotChangeSteps):
            misfits.append(own)
    return PreviewedChanges(records, misfits)


def may_change_record(record: TraceRecord) -> bool:
    try:
        refuse_fixed_record(record)
    except CannotChangeSteps:
        return False
    return bool(record.steps)


def render_step_editor(
    request: HttpRequest,
    actor: Membership,
    location: FileLocation,
    form: forms.Form,
    number: int,
    record: TraceRecord,
    *,
    problem: str = "",
) -> HttpResponse:
    """Show what the person entered if there was a problem, otherwise the changes that are kept."""
    mark = choose_step_mark(record.steps)
    kept = [each for each in form.cleaned_data["step_changes"] if each.record == number]
    fits = bool(kept) and kept[0].digest == digest_steps(record.steps)
    entered = write_step_changes(kept[0].changes, record.steps, mark) if fits else {}
    return project_page(
        request,
        actor,
        "dashboard/import_step_changes.html",
        here="imports",
        status=422 if problem else 200,
        location=location,
        form=form,
        number=number,
        record=record,
        steps=build_editable_steps(record.steps, request.POST.dict() if problem else entered),
        mark=mark,
        problem=problem,
    )


def replace_changes(
    planned: Sequence[RecordChanges], entered: Mapping[str, str], number: int, record: TraceRecord
) -> list[RecordChanges]:
    """Return the planned changes with those of one record that a person entered. Raises `CannotChangeSteps`."""
    changes = read_step_changes(entered, record.steps, choose_step_mark(record.steps))
    others = [each for each in planned if each.record != number]
    if not changes:
        return others
    own = RecordChanges(number, record.line or 1, digest_steps(record.steps), tuple(changes))
    change_record(record, own)  # refuses what is impossible
    return [*others, own]
