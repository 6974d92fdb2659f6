"""Rebuild records from single options and judgments. This is the general path, for submissions that are not compact
(`formats.rows`): written steps, comments, categories, agents, or steps that were not shown. Reads only.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import rawsql
from formats.records import JudgmentRecord, OptionRecord, StepRecord, TurnRecord, WrittenStep
from formats.rows import ExportRow, RowFacts, build_record

_STEPS = rawsql.load_sql(__file__, "row_steps.sql")
_TURNS = rawsql.load_sql(__file__, "row_turns.sql")


class OptionRow(NamedTuple):
    position: int  # in the manifest
    step: int
    step_position: int
    kind: str
    is_rateable: bool
    option: int | None
    text: str


class TurnRow(NamedTuple):
    position: int  # in the manifest
    turn: int
    step: int
    shown: str | None
    chosen: int | None
    written_text: str | None
    written_rating: int | None
    written_flagged: bool | None
    written_corrected_rating: int | None
    comment: str
    active_ms: int | None
    option: int | None
    rating: int | None
    flagged: bool | None
    category: str
    reason: str
    value: float | None
    rollouts: int | None
    successes: int | None


class _Step(NamedTuple):
    position: int
    kind: str
    is_rateable: bool
    option_ids: list[int]
    texts: list[str]


def rebuild_rows(manifest_id: int, rows: Sequence[RowFacts]) -> dict[int, ExportRow]:
    """Return these rows of a manifest by position."""
    parameters = {"manifest": manifest_id, "positions": [facts.position for facts in rows]}
    was_enabled = gc.isenabled()
    gc.disable()  # thousands of small objects without reference cycles
    try:
        steps: dict[int, dict[int, _Step]] = {}
        for position, options in groupby(rawsql.fetch_named(OptionRow, _STEPS, parameters), attrgetter("position")):
            steps[position] = {step: _build_step(list(group)) for step, group in groupby(options, attrgetter("step"))}
        turns: dict[int, list[TurnRecord]] = {}
        for position, judgments in groupby(rawsql.fetch_named(TurnRow, _TURNS, parameters), attrgetter("position")):
            turns[position] = list(_build_turns(judgments, steps[position]))
        return {facts.position: _rebuild_row(facts, steps, turns) for facts in rows}
    finally:
        if was_enabled:
            gc.enable()


def _rebuild_row(
    facts: RowFacts, steps: Mapping[int, Mapping[int, _Step]], turns: Mapping[int, list[TurnRecord]]
) -> ExportRow:
    own_steps = _build_own_steps(steps.get(facts.position, {}), facts.n_steps)
    return ExportRow(facts, None, build_record(facts, own_steps, turns.get(facts.position, [])))


def _build_step(options: list[OptionRow]) -> _Step:
    first = options[0]
    pairs = [(row.option, row.text) for row in options if row.option is not None]
    return _Step(
        first.step_position, first.kind, first.is_rateable, [option for option, _ in pairs], [text for _, text in pairs]
    )


def _build_own_steps(steps: Mapping[int, _Step], n: int) -> list[StepRecord]:
    """Return the trace's own steps. A file may have ratings of steps after its end, which are only in the turns."""
    records = [StepRecord([]) for _ in range(n)]
    for step in steps.values():
        if step.position < n:
            options = [OptionRecord(text) for text in step.texts]
            records[step.position] = StepRecord(options, step.kind, step.is_rateable)
    return records


def _build_turns(rows: Iterator[TurnRow], steps: Mapping[int, _Step]) -> Iterator[TurnRecord]:
    for _, group in groupby(rows, attrgetter("turn")):
        judgments = list(group)
        turn = judgments[0]
        step = steps[turn.step]
        written = None
        if turn.written_text is not None:
            written = WrittenStep(
                turn.written_text, turn.written_rating, turn.written_flagged, turn.written_corrected_rating
            )
        shown = None if turn.shown is None else _build_judgments(turn.shown, judgments, step)
        yield TurnRecord(step.position, shown, turn.chosen, written, turn.comment, turn.active_ms)


def _build_judgments(shown: str, judgments: list[TurnRow], step: _Step) -> list[JudgmentRecord]:
    """Return the options in the order in which they were shown, each with its judgment."""
    by_option = {row.option: row for row in judgments if row.option is not None}
    records = []
    for place in map(int, shown.split()):
        row, text = by_option.get(step.option_ids[place]), step.texts[place]
        records.append(
            JudgmentRecord(text)
            if row is None
            else JudgmentRecord(
                text, row.rating, row.flagged, row.category, row.reason, row.value, row.rollouts, row.successes
            )
        )
    return records
