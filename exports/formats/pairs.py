"""Pairs of alternatives of one step, the better one first: for step-wise preference learning (step-DPO).

An option that was rated positive is preferred to each that was rated negative in the same turn. A step in the rater's
own words is preferred too, where such steps are taken for right.
"""

from collections.abc import Iterator

from exports.formats import path
from exports.formats.columns import Columns, Row
from exports.formats.examples import Example
from exports.formats.path import Rule
from exports.formats.tally import Tally
from labeling.importing.records import TraceRecord, TurnRecord

COLUMNS: Columns = {
    "prompt": "string",
    "prefix": ["string"],
    "chosen": "string",
    "rejected": "string",
    "step": "int64",
    "trace": "int64",
    "rater": "string",
}
NO_PAIR = "no step with a positive and a negative alternative"


def rows(example: Example, rule: Rule, tally: Tally) -> Iterator[Row]:
    for facts, record in example.labelled(rule, tally):
        rater = None if example.is_consensus else facts.labeler
        found = False
        for row in _pairs(record, rule):
            found = True
            yield {**row, "trace": facts.trace, "rater": rater}
        if not found:
            tally.leave_out(NO_PAIR)


def _pairs(record: TraceRecord, rule: Rule) -> Iterator[Row]:
    prompt, prefix = record.problem.text, list[str]()
    turns = {turn.position: turn for turn in record.submissions[0].turns}
    for position in range(max(turns, default=-1) + 1):
        turn = turns.get(position)
        if turn is None:
            step = record.steps[position] if position < len(record.steps) else None
            if step is None or step.is_rateable or not step.options:
                return
            prefix.append(step.options[0].text)  # what an agent saw
            continue
        better, worse = _sides(turn, rule)
        for chosen in better:
            for rejected in worse:
                yield {"prompt": prompt, "prefix": [*prefix], "chosen": chosen, "rejected": rejected, "step": position}
        taken = path.own(turn)
        if taken is None or taken.rating is None or taken.rating < 0:
            return
        prefix.append(taken.text)


def _sides(turn: TurnRecord, rule: Rule) -> tuple[list[str], list[str]]:
    shown = turn.shown or []
    better = [each.text for each in shown if each.rating == 1]
    if turn.written is not None and rule.human_steps == "positive":
        better.append(turn.written.text)
    return better, [each.text for each in shown if each.rating == -1]
