"""Merge the edits of several clients: which edits are applied, and what they change. Pure.

Each edit carries its client, the client's sequence number, and the version of the assignment that the client had seen.

1. Within a client, a lower sequence number never wins over a higher one.
2. Between two clients, the edit that had seen the higher version wins.
3. If both had seen the same version, the later arrival wins.

The last applied edit of a target gives its current value, so the history alone determines the state.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from django.utils.translation import gettext as _

from labeling.assignments.answer_sheet import (
    PARTS,
    AnswerRow,
    AnswerSheet,
    EditBatch,
    EditTarget,
    HistoryEdit,
    IncomingEdit,
    JudgmentRow,
    StepReviewRow,
    edit_target,
    refuse_edit,
)
from labeling.models.assignment import RatingEditKind

_OWN_OPTION_REVIEW = StepReviewRow(shown="0", chosen=0)


class EditStamp(NamedTuple):
    """The origin of the edit that gave a target its current value."""

    client: str
    sequence: int
    seen: int


class LostEdit(NamedTuple):
    """An edit that was not applied, with the current value of its target."""

    sequence: int
    target: EditTarget
    client: str  # whose edit won; "" if no edit did
    review: StepReviewRow
    judgment: JudgmentRow


class NewEdit(NamedTuple):
    """An edit that is not in the history yet."""

    edit: IncomingEdit
    seen: int  # at most the current version
    was_applied: bool


class MergeResult(NamedTuple):
    """The changes of a batch: new rows of the history, and step reviews, judgments and answers with new values."""

    new_edits: tuple[NewEdit, ...]
    reviews: dict[int, StepReviewRow]
    judgments: dict[tuple[int, int], JudgmentRow]
    answers: dict[str, AnswerRow]
    lost: tuple[LostEdit, ...]


def edit_wins(new: EditStamp, current: EditStamp | None, own_newest: int) -> bool:
    """Return whether an edit wins over the current one. `own_newest` is the client's newest edit of the target."""
    if new.sequence <= own_newest:
        return False
    return current is None or current.client == new.client or new.seen >= current.seen


def merge_batch(sheet: AnswerSheet, batch: EditBatch, *, now: dt.datetime) -> MergeResult:
    """Compute the changes of a batch. Raises EditRefused for an edit of a step or option that the trace does not
    have."""
    client = batch.client
    in_order = sorted(batch.edits, key=attrgetter("sequence"))
    known = {earlier.sequence for earlier in sheet.history if earlier.client == client}
    fresh = [edit for edit in in_order if edit.sequence not in known] if known else in_order
    for edit in fresh:
        if fault := _find_fault(sheet, edit):
            refuse_edit(edit, batch.edits.index(edit), *fault)
    stamps, newest = _current_stamps(sheet.history, client)
    new_edits = _decide_new_edits(sheet, client, fresh, stamps, newest)
    applied = [each.edit for each in new_edits if each.was_applied]
    reviews, judgments = _merge_step_reviews(sheet, fresh, applied, now), _merge_judgments(applied)
    answers = _merge_answers(sheet, fresh, applied, now)
    if len(applied) == len(batch.edits):
        return MergeResult(new_edits, reviews, judgments, answers, lost=())
    after = sheet.with_changes(reviews, judgments, answers)
    lost = tuple(_find_lost_edits(after, client, in_order, stamps, newest))
    return MergeResult(new_edits, reviews, judgments, answers, lost)


def _find_fault(sheet: AnswerSheet, edit: IncomingEdit) -> tuple[str, str] | None:
    if edit.kind == RatingEditKind.ANSWER:
        return None
    step = sheet.steps.get(edit.step)
    if step is None:
        return "step", _("the trace has no step with this number")
    if edit.option is not None and edit.option >= len(step.options):
        return "option", _("the step has no option %(option)d") % {"option": edit.option + 1}
    if PARTS[edit.kind] == "rating" and not step.is_rateable:
        return "step", _("the step is context and is not rated")
    if not all(map(sheet.has_clause, edit.citations or ())):
        return "citations", _("the guideline has no such clause")
    if edit.kind == RatingEditKind.CHOOSE and not set(edit.text.split()) <= {str(n) for n in range(len(step.options))}:
        return "text", _("the options shown do not belong to this step")
    return None


def _current_stamps(
    history: Iterable[HistoryEdit], client: str
) -> tuple[dict[EditTarget, EditStamp], dict[EditTarget, int]]:
    """Return the current stamp of each target, and the client's newest edit of each target, applied or not."""
    stamps: dict[EditTarget, EditStamp] = {}
    newest: dict[EditTarget, int] = {}
    for earlier in sorted(history, key=lambda earlier: (earlier.version, earlier.sequence)):
        target = edit_target(earlier.kind, earlier.step, earlier.option, earlier.question)
        if earlier.was_applied:
            stamps[target] = EditStamp(earlier.client, earlier.sequence, earlier.seen)
        if earlier.client == client:
            newest[target] = max(newest.get(target, 0), earlier.sequence)
    return stamps, newest


def _decide_new_edits(
    sheet: AnswerSheet,
    client: str,
    fresh: Sequence[IncomingEdit],
    stamps: dict[EditTarget, EditStamp],
    newest: dict[EditTarget, int],
) -> tuple[NewEdit, ...]:
    """Decide on each new edit, and update the stamps. Only the last edit of a target in a batch can be applied."""
    targets = [edit.target for edit in fresh]
    last = {target: edit.sequence for target, edit in zip(targets, fresh, strict=True)}
    is_open, version = not sheet.is_closed, sheet.facts.version
    new_edits = []
    for target, edit in zip(targets, fresh, strict=True):
        stamp = EditStamp(client, edit.sequence, min(edit.seen, version))
        is_last = last[target] == edit.sequence
        applied = is_open and is_last and edit_wins(stamp, stamps.get(target), newest.get(target, 0))
        if applied:
            stamps[target] = stamp
        new_edits.append(NewEdit(edit, stamp.seen, applied))
    for target, sequence in last.items():
        newest[target] = max(newest.get(target, 0), sequence)
    return tuple(new_edits)


def _merge_step_reviews(
    sheet: AnswerSheet, fresh: Sequence[IncomingEdit], applied: Sequence[IncomingEdit], now: dt.datetime
) -> dict[int, StepReviewRow]:
    """Return the step reviews that new edits create or change. Every new edit adds active time, applied or not."""
    if sheet.is_closed:
        return {}
    max_ms = sheet.facts.max_active_ms(now)
    reviews: dict[int, StepReviewRow] = {}
    for edit in fresh:
        if edit.kind == RatingEditKind.ANSWER:
            continue
        review = reviews.get(edit.step) or sheet.reviews.get(edit.step) or _initial_step_review(sheet, edit.step)
        shown, chosen, written_text, comment, active_ms, missing = review
        active_ms = min(max_ms, (active_ms or 0) + edit.active_ms)
        reviews[edit.step] = StepReviewRow(shown, chosen, written_text, comment, active_ms, missing)
    for edit in applied:
        if PARTS[edit.kind] not in ("rating", "answer"):
            reviews[edit.step] = _apply_edit(reviews[edit.step], edit, len(sheet.steps[edit.step].options))
    return reviews


def _initial_step_review(sheet: AnswerSheet, position: int) -> StepReviewRow:
    """In a pregenerated trace the trace's own option was shown and chosen."""
    step = sheet.steps[position]
    is_own = sheet.is_pregenerated and step.is_rateable and bool(step.options)
    return _OWN_OPTION_REVIEW if is_own else StepReviewRow()


def _apply_edit(review: StepReviewRow, edit: IncomingEdit, n_options: int) -> StepReviewRow:
    part = PARTS[edit.kind]
    if part == "comment":
        return review._replace(comment=edit.text)
    if part == "missing":
        return review._replace(missing=edit.text)
    if part == "written":
        return review._replace(written_text=edit.text or None)
    # `chosen` is a place among the options shown. The edit gives their order; the default is the order of the step.
    shown = edit.text.split() or (review.shown or "").split()
    if edit.option is not None and str(edit.option) not in shown:
        shown = [str(position) for position in range(n_options)]
    place = None if edit.option is None else shown.index(str(edit.option))
    return review._replace(shown=" ".join(shown), chosen=place)


def _merge_judgments(applied: Sequence[IncomingEdit]) -> dict[tuple[int, int], JudgmentRow]:
    return {
        (edit.step, edit.option): JudgmentRow(
            *(edit.rating, edit.flagged, edit.category, edit.text, edit.error_link, edit.severity),
            edit.stored_evidence(),
            edit.stored_citations(),
        )
        for edit in applied
        if PARTS[edit.kind] == "rating" and edit.option is not None
    }


def _merge_answers(
    sheet: AnswerSheet, fresh: Sequence[IncomingEdit], applied: Sequence[IncomingEdit], now: dt.datetime
) -> dict[str, AnswerRow]:
    """Return the answers to questions on the whole trace that new edits give or change, with their active time."""
    answers: dict[str, AnswerRow] = {}
    for edit in fresh if not sheet.is_closed else ():
        if edit.kind == RatingEditKind.ANSWER:
            value, active_ms = answers.get(edit.question) or sheet.answers.get(edit.question) or AnswerRow()
            max_ms = sheet.facts.max_active_ms(now)
            answers[edit.question] = AnswerRow(value, min(max_ms, (active_ms or 0) + edit.active_ms))
    for edit in applied:
        if edit.kind == RatingEditKind.ANSWER:
            answers[edit.question] = answers[edit.question]._replace(value=edit.text)
    return answers


def _find_lost_edits(
    after: AnswerSheet,
    client: str,
    in_order: Sequence[IncomingEdit],
    stamps: dict[EditTarget, EditStamp],
    newest: dict[EditTarget, int],
) -> Iterator[LostEdit]:
    """Yield the batch's last edit of each target that is not its current value. A repeated batch yields the same."""
    last = {edit.target: edit for edit in in_order}
    for target, edit in last.items():
        stamp = stamps.get(target)
        has_newer = newest.get(target, 0) > edit.sequence
        is_current = stamp is not None and stamp.client == client and stamp.sequence >= edit.sequence
        if not is_current and not has_newer:
            review = after.reviews.get(target.step, StepReviewRow())
            place = (target.step, -1 if target.option is None else target.option)
            judgment = after.judgments.get(place, JudgmentRow())
            yield LostEdit(edit.sequence, target, stamp.client if stamp else "", review, judgment)
