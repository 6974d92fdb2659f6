"""The form in which a person splits and merges steps: a text for each step, with marks, and a box to merge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from formats.messages import MessagePart, StepPlace, find_message_parts
from formats.records import StepChange, StepRecord
from formats.step_changes import choose_mark, find_cuts, insert_marks, is_changeable, may_merge
from labeling.traces.record_changes import CannotChangeSteps


@dataclass(frozen=True)
class EditableStep:
    """A step of the form, with what the person has entered so far."""

    position: int
    number: int | None  # as annotators see it; context has none
    kind: str
    text: str
    entered: str
    is_changeable: bool
    may_merge: bool
    is_merged: bool
    part: MessagePart | None

    @property
    def rows(self) -> int:
        return min(max(self.text.count("\n") + len(self.text) // 90 + 1, 2), 30)


def choose_step_mark(records: Sequence[StepRecord]) -> str:
    return choose_mark(option.text for step in records for option in step.options)


def read_step_changes(form: Mapping[str, str], records: Sequence[StepRecord], mark: str) -> list[StepChange]:
    """Read the marks and boxes of the form. Raises `CannotChangeSteps` if a text was edited."""
    changes: list[StepChange] = []
    number = 0
    for position, step in enumerate(records):
        number += step.is_rateable
        text = step.options[0].text if step.options else ""
        marked = form.get(f"text-{position}")
        cuts = () if marked is None or not is_changeable(step) else find_cuts(text, marked, mark=mark)
        if cuts is None:
            message = _("The text of step %(n)d was changed. Add or remove only the mark %(mark)s, not the text.")
            raise CannotChangeSteps(message % {"n": number, "mark": mark}, "text_changed")
        changes.append(StepChange(position, cuts, f"merge-{position}" in form))
    return [change for change in changes if change.cuts or change.merges]


def write_step_changes(changes: Sequence[StepChange], records: Sequence[StepRecord], mark: str) -> dict[str, str]:
    """Return the fields of the form that give these changes."""
    form: dict[str, str] = {}
    for change in changes:
        if change.position < len(records) and is_changeable(records[change.position]):
            text = records[change.position].options[0].text
            form[f"text-{change.position}"] = insert_marks(text, change.cuts, mark=mark)
            form |= {f"merge-{change.position}": "on"} if change.merges else {}
    return form


def build_editable_steps(records: Sequence[StepRecord], form: Mapping[str, str]) -> list[EditableStep]:
    parts = find_message_parts(StepPlace(step.source_position, step.is_rateable) for step in records)
    steps: list[EditableStep] = []
    number = 0
    for position, (step, part) in enumerate(zip(records, parts, strict=True)):
        number += step.is_rateable
        text = step.options[0].text if step.options else ""
        steps.append(
            EditableStep(
                position=position,
                number=number if step.is_rateable else None,
                kind=step.kind,
                text=text,
                entered=form.get(f"text-{position}", text),
                is_changeable=is_changeable(step),
                may_merge=position > 0 and may_merge(records[position - 1], step),
                is_merged=f"merge-{position}" in form,
                part=part,
            )
        )
    return steps
