"""Where clients meet: the rule by which a write stands or not, and what a batch makes of what stands. Pure.

Each write carries its client, the client's sequence, and the version of the assignment that the client had seen.
Within a client a lower sequence never wins. Between clients the write that saw the higher version wins; where both saw
the same, the later arrival. The last applied write of a cell is what stands there, so the history alone decides.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from django.utils.translation import gettext as _

from labeling.assignments.answer_sheet import AnswerSheet, HistoryEdit, JudgmentRow, StepReviewRow
from labeling.assignments.edit_batch import PARTS, EditBatch, EditTarget, IncomingEdit, refuse_edit
from labeling.models.judgment import RatingEditKind


class EditStamp(NamedTuple):
    """Whose write stands in a cell."""

    client: str
    sequence: int
    seen: int


class LostEdit(NamedTuple):
    """A write that does not stand, with what stands there instead."""

    sequence: int
    cell: EditTarget
    client: str  # who made what stands; "" where no write did
    turn: StepReviewRow
    judgment: JudgmentRow

    @property
    def step(self) -> int:
        return self.cell.step


class NewEdit(NamedTuple):
    """A write that is new to the history."""

    write: IncomingEdit
    seen: int  # no higher than what there was to see
    was_applied: bool


class MergeResult(NamedTuple):
    """What a batch changes: the history's new rows, and the turns and judgments that hold something else now."""

    arrivals: tuple[NewEdit, ...]
    turns: dict[int, StepReviewRow]
    judgments: dict[tuple[int, int], JudgmentRow]
    lost: tuple[LostEdit, ...]


def edit_wins(new: EditStamp, standing: EditStamp | None, own_newest: int) -> bool:
    """Whether a write takes a cell, told whose write stands there and the client's newest write about it so far."""
    if new.sequence <= own_newest:
        return False
    return standing is None or standing.client == new.client or new.seen >= standing.seen


def merge_batch(standing: AnswerSheet, batch: EditBatch, *, now: dt.datetime) -> MergeResult:
    """What becomes of what stands when this batch arrives. Nothing is written here."""
    client, writes = batch.client, batch.writes
    in_order = sorted(writes, key=_SEQUENCE)
    known = {each.sequence for each in standing.history if each.client == client}
    fresh = [each for each in in_order if each.sequence not in known] if known else in_order
    _check_targets(standing, fresh, writes)
    marks, newest = _current_stamps(standing.history, client)
    arrivals = _decide_new_edits(standing, client, fresh, marks, newest)
    applied = [each.write for each in arrivals if each.was_applied]
    turns, judgments = _merge_step_reviews(standing, fresh, applied, now), _merge_judgments(applied)
    if len(applied) == len(writes):
        return MergeResult(arrivals, turns, judgments, lost=())
    after = _MergedState(standing, turns, judgments)
    return MergeResult(arrivals, turns, judgments, tuple(_find_lost_edits(after, client, in_order, marks, newest)))


_SEQUENCE = attrgetter("sequence")


def _check_targets(standing: AnswerSheet, fresh: Sequence[IncomingEdit], writes: Sequence[IncomingEdit]) -> None:
    for write in fresh:
        fault = _find_fault(standing, write)
        if fault:
            refuse_edit(write, writes.index(write), *fault)


def _find_fault(standing: AnswerSheet, write: IncomingEdit) -> tuple[str, str] | None:
    step = standing.steps.get(write.step)
    if step is None:
        return "step", _("the trace has no such step")
    if write.option is not None and write.option >= len(step.options):
        return "option", _("it has no option %(option)d") % {"option": write.option + 1}
    if PARTS[write.kind] == "rating" and not step.is_rateable:
        return "step", _("it is context and is not rated")
    if write.kind == RatingEditKind.CHOOSE and not set(write.text.split()) <= {
        str(n) for n in range(len(step.options))
    }:
        return "text", _("the options shown are not those of the step")
    return None


def _current_stamps(
    history: Iterable[HistoryEdit], client: str
) -> tuple[dict[EditTarget, EditStamp], dict[EditTarget, int]]:
    """Whose write stands in each cell, and the client's newest write about it, applied or not."""
    marks: dict[EditTarget, EditStamp] = {}
    newest: dict[EditTarget, int] = {}
    for each in sorted(history, key=lambda each: (each.version, each.sequence)):
        part = PARTS[each.kind]
        cell = EditTarget(part, each.step, each.option if part == "rating" else None)
        if each.was_applied:
            marks[cell] = EditStamp(each.client, each.sequence, each.seen)
        if each.client == client:
            newest[cell] = max(newest.get(cell, 0), each.sequence)
    return marks, newest


def _decide_new_edits(
    standing: AnswerSheet,
    client: str,
    fresh: Sequence[IncomingEdit],
    marks: dict[EditTarget, EditStamp],
    newest: dict[EditTarget, int],
) -> tuple[NewEdit, ...]:
    """Decides each new write, and moves the marks. Of a batch only the last write of a cell can stand."""
    cells = [write.cell for write in fresh]
    last = {cell: write.sequence for cell, write in zip(cells, fresh, strict=True)}
    is_open, version = not standing.is_closed, standing.facts.version
    arrivals = []
    for cell, write in zip(cells, fresh, strict=True):
        mark = EditStamp(client, write.sequence, min(write.seen, version))
        applied = is_open and last[cell] == write.sequence and edit_wins(mark, marks.get(cell), newest.get(cell, 0))
        if applied:
            marks[cell] = mark
        arrivals.append(NewEdit(write, mark.seen, applied))
    for cell, sequence in last.items():
        newest[cell] = max(newest.get(cell, 0), sequence)
    return tuple(arrivals)


def _merge_step_reviews(
    standing: AnswerSheet, fresh: Sequence[IncomingEdit], applied: Sequence[IncomingEdit], now: dt.datetime
) -> dict[int, StepReviewRow]:
    """The turns that the new writes begin or change. Time counts for each of them, whether or not it won."""
    if standing.is_closed:
        return {}
    most_ms = standing.facts.most_ms(now)
    turns: dict[int, StepReviewRow] = {}
    for write in fresh:
        turn = turns.get(write.step) or standing.turns.get(write.step) or _initial_step_review(standing, write.step)
        shown, chosen, written_text, comment, active_ms = turn
        turns[write.step] = StepReviewRow(
            shown, chosen, written_text, comment, min(most_ms, (active_ms or 0) + write.active_ms)
        )
    for write in applied:
        if PARTS[write.kind] != "rating":
            turns[write.step] = _apply_edit(turns[write.step], write, len(standing.steps[write.step].options))
    return turns


def _initial_step_review(standing: AnswerSheet, position: int) -> StepReviewRow:
    """A turn of a path that stands already: the trace's own option was shown, and the path went on with it."""
    step = standing.steps[position]
    is_own = standing.is_pregenerated and step.is_rateable and bool(step.options)
    return _OWN_STEP_REVIEW if is_own else StepReviewRow()


_OWN_STEP_REVIEW = StepReviewRow(shown="0", chosen=0)


def _apply_edit(turn: StepReviewRow, write: IncomingEdit, n_options: int) -> StepReviewRow:
    part = PARTS[write.kind]
    if part == "comment":
        return turn._replace(comment=write.text)
    if part == "written":
        return turn._replace(written_text=write.text or None)
    return _apply_choice(turn, write, n_options)


def _apply_choice(turn: StepReviewRow, write: IncomingEdit, n_options: int) -> StepReviewRow:
    """`chosen` is a place among the options shown. A choice says in which order they were shown, or they stood in
    the order of the step."""
    shown = write.text.split() or (turn.shown or "").split()
    if write.option is not None and str(write.option) not in shown:
        shown = [str(position) for position in range(n_options)]
    place = None if write.option is None else shown.index(str(write.option))
    return turn._replace(shown=" ".join(shown), chosen=place)


def _merge_judgments(applied: Sequence[IncomingEdit]) -> dict[tuple[int, int], JudgmentRow]:
    return {
        (write.step, write.option): JudgmentRow(write.rating, write.flagged, write.category, write.text)
        for write in applied
        if PARTS[write.kind] == "rating" and write.option is not None
    }


class _MergedState(NamedTuple):
    """What stands when the batch has arrived."""

    before: AnswerSheet
    turns: dict[int, StepReviewRow]
    judgments: dict[tuple[int, int], JudgmentRow]

    def turn(self, cell: EditTarget) -> StepReviewRow:
        return self.turns.get(cell.step) or self.before.turns.get(cell.step) or StepReviewRow()

    def judgment(self, cell: EditTarget) -> JudgmentRow:
        place = (cell.step, cell.option if cell.option is not None else -1)
        return self.judgments.get(place) or self.before.judgments.get(place) or JudgmentRow()


def _find_lost_edits(
    now: _MergedState,
    client: str,
    in_order: Sequence[IncomingEdit],
    marks: dict[EditTarget, EditStamp],
    newest: dict[EditTarget, int],
) -> Iterable[LostEdit]:
    """The batch's last word about each cell, where it does not stand. The same when the batch is sent again."""
    last = {write.cell: write for write in in_order}
    for cell, write in last.items():
        mark = marks.get(cell)
        is_outdone_by_own = newest.get(cell, 0) > write.sequence
        stands_now = mark is not None and mark.client == client and mark.sequence >= write.sequence
        if not stands_now and not is_outdone_by_own:
            yield LostEdit(write.sequence, cell, mark.client if mark else "", now.turn(cell), now.judgment(cell))
