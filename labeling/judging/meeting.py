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

from labeling.judging.standing import JudgmentRow, Known, Standing, TurnRow
from labeling.judging.writes import PARTS, Batch, Cell, WriteIn, refuse
from labeling.models.judgment import WriteKind


class Mark(NamedTuple):
    """Whose write stands in a cell."""

    client: str
    sequence: int
    seen: int


class Lost(NamedTuple):
    """A write that does not stand, with what stands there instead."""

    sequence: int
    cell: Cell
    client: str  # who made what stands; "" where no write did
    turn: TurnRow
    judgment: JudgmentRow

    @property
    def step(self) -> int:
        return self.cell.step


class Arrival(NamedTuple):
    """A write that is new to the history."""

    write: WriteIn
    seen: int  # no higher than what there was to see
    was_applied: bool


class Meeting(NamedTuple):
    """What a batch changes: the history's new rows, and the turns and judgments that hold something else now."""

    arrivals: tuple[Arrival, ...]
    turns: dict[int, TurnRow]
    judgments: dict[tuple[int, int], JudgmentRow]
    lost: tuple[Lost, ...]


def stands(new: Mark, standing: Mark | None, own_newest: int) -> bool:
    """Whether a write takes a cell, told whose write stands there and the client's newest write about it so far."""
    if new.sequence <= own_newest:
        return False
    return standing is None or standing.client == new.client or new.seen >= standing.seen


def meet(standing: Standing, batch: Batch, *, now: dt.datetime) -> Meeting:
    """What becomes of what stands when this batch arrives. Nothing is written here."""
    client, writes = batch.client, batch.writes
    in_order = sorted(writes, key=_SEQUENCE)
    known = {each.sequence for each in standing.history if each.client == client}
    fresh = [each for each in in_order if each.sequence not in known] if known else in_order
    _check_places(standing, fresh, writes)
    marks, newest = _marks(standing.history, client)
    arrivals = _arrivals(standing, client, fresh, marks, newest)
    applied = [each.write for each in arrivals if each.was_applied]
    turns, judgments = _turns(standing, fresh, applied, now), _judgments(applied)
    if len(applied) == len(writes):
        return Meeting(arrivals, turns, judgments, lost=())
    after = _Now(standing, turns, judgments)
    return Meeting(arrivals, turns, judgments, tuple(_lost(after, client, in_order, marks, newest)))


_SEQUENCE = attrgetter("sequence")


def _check_places(standing: Standing, fresh: Sequence[WriteIn], writes: Sequence[WriteIn]) -> None:
    for write in fresh:
        fault = _fault(standing, write)
        if fault:
            refuse(write, writes.index(write), *fault)


def _fault(standing: Standing, write: WriteIn) -> tuple[str, str] | None:
    step = standing.steps.get(write.step)
    if step is None:
        return "step", _("the trace has no such step")
    if write.option is not None and write.option >= len(step.options):
        return "option", _("it has no option %(option)d") % {"option": write.option + 1}
    if PARTS[write.kind] == "rating" and not step.is_rateable:
        return "step", _("it is context and is not rated")
    if write.kind == WriteKind.CHOOSE and not set(write.text.split()) <= {str(n) for n in range(len(step.options))}:
        return "text", _("the options shown are not those of the step")
    return None


def _marks(history: Iterable[Known], client: str) -> tuple[dict[Cell, Mark], dict[Cell, int]]:
    """Whose write stands in each cell, and the client's newest write about it, applied or not."""
    marks: dict[Cell, Mark] = {}
    newest: dict[Cell, int] = {}
    for each in sorted(history, key=lambda each: (each.version, each.sequence)):
        part = PARTS[each.kind]
        cell = Cell(part, each.step, each.option if part == "rating" else None)
        if each.was_applied:
            marks[cell] = Mark(each.client, each.sequence, each.seen)
        if each.client == client:
            newest[cell] = max(newest.get(cell, 0), each.sequence)
    return marks, newest


def _arrivals(
    standing: Standing, client: str, fresh: Sequence[WriteIn], marks: dict[Cell, Mark], newest: dict[Cell, int]
) -> tuple[Arrival, ...]:
    """Decides each new write, and moves the marks. Of a batch only the last write of a cell can stand."""
    cells = [write.cell for write in fresh]
    last = {cell: write.sequence for cell, write in zip(cells, fresh, strict=True)}
    is_open, version = not standing.is_closed, standing.facts.version
    arrivals = []
    for cell, write in zip(cells, fresh, strict=True):
        mark = Mark(client, write.sequence, min(write.seen, version))
        applied = is_open and last[cell] == write.sequence and stands(mark, marks.get(cell), newest.get(cell, 0))
        if applied:
            marks[cell] = mark
        arrivals.append(Arrival(write, mark.seen, applied))
    for cell, sequence in last.items():
        newest[cell] = max(newest.get(cell, 0), sequence)
    return tuple(arrivals)


def _turns(
    standing: Standing, fresh: Sequence[WriteIn], applied: Sequence[WriteIn], now: dt.datetime
) -> dict[int, TurnRow]:
    """The turns that the new writes begin or change. Time counts for each of them, whether or not it won."""
    if standing.is_closed:
        return {}
    most_ms = standing.facts.most_ms(now)
    turns: dict[int, TurnRow] = {}
    for write in fresh:
        turn = turns.get(write.step) or standing.turns.get(write.step) or _first(standing, write.step)
        shown, chosen, written_text, comment, active_ms = turn
        turns[write.step] = TurnRow(
            shown, chosen, written_text, comment, min(most_ms, (active_ms or 0) + write.active_ms)
        )
    for write in applied:
        if PARTS[write.kind] != "rating":
            turns[write.step] = _changed(turns[write.step], write, len(standing.steps[write.step].options))
    return turns


def _first(standing: Standing, position: int) -> TurnRow:
    """A turn of a path that stands already: the trace's own option was shown, and the path went on with it."""
    step = standing.steps[position]
    is_own = standing.is_pregenerated and step.is_rateable and bool(step.options)
    return _OWN if is_own else TurnRow()


_OWN = TurnRow(shown="0", chosen=0)


def _changed(turn: TurnRow, write: WriteIn, n_options: int) -> TurnRow:
    part = PARTS[write.kind]
    if part == "comment":
        return turn._replace(comment=write.text)
    if part == "written":
        return turn._replace(written_text=write.text or None)
    return _chosen(turn, write, n_options)


def _chosen(turn: TurnRow, write: WriteIn, n_options: int) -> TurnRow:
    """`chosen` is a place among the options shown. A choice says in which order they were shown, or they stood in
    the order of the step."""
    shown = write.text.split() or (turn.shown or "").split()
    if write.option is not None and str(write.option) not in shown:
        shown = [str(position) for position in range(n_options)]
    place = None if write.option is None else shown.index(str(write.option))
    return turn._replace(shown=" ".join(shown), chosen=place)


def _judgments(applied: Sequence[WriteIn]) -> dict[tuple[int, int], JudgmentRow]:
    return {
        (write.step, write.option): JudgmentRow(write.rating, write.flagged, write.category, write.text)
        for write in applied
        if PARTS[write.kind] == "rating" and write.option is not None
    }


class _Now(NamedTuple):
    """What stands when the batch has arrived."""

    before: Standing
    turns: dict[int, TurnRow]
    judgments: dict[tuple[int, int], JudgmentRow]

    def turn(self, cell: Cell) -> TurnRow:
        return self.turns.get(cell.step) or self.before.turns.get(cell.step) or TurnRow()

    def judgment(self, cell: Cell) -> JudgmentRow:
        place = (cell.step, cell.option if cell.option is not None else -1)
        return self.judgments.get(place) or self.before.judgments.get(place) or JudgmentRow()


def _lost(
    now: _Now, client: str, in_order: Sequence[WriteIn], marks: dict[Cell, Mark], newest: dict[Cell, int]
) -> Iterable[Lost]:
    """The batch's last word about each cell, where it does not stand. The same when the batch is sent again."""
    last = {write.cell: write for write in in_order}
    for cell, write in last.items():
        mark = marks.get(cell)
        is_outdone_by_own = newest.get(cell, 0) > write.sequence
        stands_now = mark is not None and mark.client == client and mark.sequence >= write.sequence
        if not stands_now and not is_outdone_by_own:
            yield Lost(write.sequence, cell, mark.client if mark else "", now.turn(cell), now.judgment(cell))
