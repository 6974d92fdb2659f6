"""Turns rows back into the records that they came from, one row for each option and each judgment: for what is not
plain (`formats.rows`), be it written steps, comments, categories, agents, or a step that nobody was shown.

Plain statements and tuples: a record has some dozens of rows. Nothing is written here.
"""

import gc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

import rawsql
from formats.records import JudgmentRecord, OptionRecord, StepRecord, TurnRecord, WrittenStep
from formats.rows import ExportRow, RowFacts, build_record

_Row = tuple[Any, ...]
_Rows = Sequence[_Row]

# A list of unknown length as one parameter: PostgreSQL expects a hundred rows, which is about a chunk.
_WHERE = """WHERE m.manifest_id = %(manifest)s AND m.position IN (
  SELECT place::integer FROM json_array_elements_text(%(positions)s::json) AS given (place))"""

_OPTIONS = f"""SELECT m.position, s.id, s.position, s.kind, s.is_rateable, o.id, o.text
FROM labeling_manifestrow m
JOIN labeling_step s ON s.trace_id = m.trace_id
LEFT JOIN labeling_option o ON o.step_id = s.id
{_WHERE} ORDER BY m.position, s.position, o.position"""  # noqa: S608  made of constants

_TURNS = f"""SELECT m.position, t.id, t.step_id, t.shown, t.chosen, t.written_text, t.written_rating, t.written_flagged,
  t.written_corrected_rating, t.comment, t.active_ms, j.option_id, j.rating, j.flagged, j.category, j.reason, j.value,
  j.rollouts, j.successes
FROM labeling_manifestrow m
JOIN labeling_submission u ON u.id = m.submission_id
JOIN labeling_stepreview t ON t.assignment_id = u.assignment_id AND t.revision = u.revision
LEFT JOIN labeling_judgment j ON j.turn_id = t.id
{_WHERE} ORDER BY m.position, t.id"""  # noqa: S608  made of constants


class _Step(NamedTuple):
    position: int
    kind: str
    is_rateable: bool
    option_ids: list[int]
    texts: list[str]  # of its options, by place


def rebuild_rows(
    manifest_id: int, positions: Sequence[int], submissions: Mapping[int, RowFacts]
) -> dict[int, ExportRow]:
    """The submissions at these positions of a manifest. No cycles are made, so none are looked for meanwhile."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        steps_at, step_of = _group_steps(_query_rows(_OPTIONS, manifest_id, positions))
        turns_at = _group_turns(_query_rows(_TURNS, manifest_id, positions), step_of)
        return {at: _rebuild_row(submissions[at], steps_at.get(at, []), turns_at.get(at, [])) for at in positions}
    finally:
        if was_enabled:
            gc.enable()


def _query_rows(statement: str, manifest_id: int, positions: Sequence[int]) -> list[_Row]:
    return rawsql.fetch_rows(statement, {"manifest": manifest_id, "positions": orjson.dumps(positions).decode()})


def _rebuild_row(facts: RowFacts, steps: "list[_Step]", turns: list[TurnRecord]) -> ExportRow:
    return ExportRow(facts, None, build_record(facts, _own_steps(steps, facts.n_steps), turns))


def _group_steps(rows: _Rows) -> tuple[dict[int, list[_Step]], dict[int, _Step]]:
    """The steps of each submission's trace in order, and each step by its id."""
    steps_at: dict[int, list[_Step]] = {}
    step_of: dict[int, _Step] = {}
    here, last = -1, (-1, -1)
    steps: list[_Step] = []
    for at, step_id, position, kind, is_rateable, option_id, text in rows:
        if at != here:
            steps = steps_at[at] = []
            here = at
        if (at, step_id) == last:
            step = steps[-1]
            step.option_ids.append(option_id)
            step.texts.append(text)
            continue
        known = option_id is not None
        step = _Step(position, kind, is_rateable, [option_id] if known else [], [text] if known else [])
        steps.append(step)
        step_of[step_id] = step
        last = (at, step_id)
    return steps_at, step_of


def _group_turns(rows: _Rows, step_of: dict[int, _Step]) -> dict[int, list[TurnRecord]]:
    turns_at: dict[int, list[TurnRecord]] = {}
    start, end = 0, len(rows)
    while start < end:
        row = rows[start]
        turn_id, stop = row[1], start + 1
        while stop < end and rows[stop][1] == turn_id:
            stop += 1
        turn = _build_turn(row, rows[start:stop], step_of[row[2]])
        of_submission = turns_at.get(row[0])
        if of_submission is None:
            turns_at[row[0]] = [turn]
        else:
            of_submission.append(turn)
        start = stop
    for turns in turns_at.values():
        turns.sort(key=_position)
    return turns_at


def _position(turn: TurnRecord) -> int:
    return turn.position


def _build_turn(row: _Row, judged: _Rows, step: _Step) -> TurnRecord:
    shown, text = row[3], row[5]
    return TurnRecord(
        step.position,
        None if shown is None else _shown_options(shown, judged, step),
        row[4],
        None if text is None else WrittenStep(text, row[6], row[7], row[8]),
        row[9],
        row[10],
    )


def _shown_options(shown: str, judged: _Rows, step: _Step) -> list[JudgmentRecord]:
    """The options as they were shown, and what was said of each."""
    if shown == "0" and len(judged) == 1 and judged[0][11] == step.option_ids[0]:  # nearly every turn is so
        row = judged[0]
        return [JudgmentRecord(step.texts[0], row[12], row[13], row[14], row[15], row[16], row[17], row[18])]
    said = {row[11]: row for row in judged if row[11] is not None}
    found = []
    for place in map(int, shown.split()):
        known = said.get(step.option_ids[place])
        text = step.texts[place]
        if known is None:
            found.append(JudgmentRecord(text))
        else:
            found.append(JudgmentRecord(text, known[12], known[13], *known[14:19]))
    return found


def _own_steps(steps: list[_Step], n: int) -> list[StepRecord]:
    """The trace's own steps. A file may have ratings of steps past its end, which are in the turns alone."""
    found: list[StepRecord] = []
    for step in steps:
        if step.position >= n:
            break
        while len(found) < step.position:
            found.append(StepRecord([]))
        found.append(StepRecord([OptionRecord(text) for text in step.texts], step.kind, step.is_rateable))
    found.extend(StepRecord([]) for _ in range(n - len(found)))
    return found
