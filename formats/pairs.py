"""Preference pairs: two alternatives of one step, the better one first, for step-wise preference learning (step-DPO).

A positive option is preferred to every negative option of the same turn. So is a step that the rater wrote, if
`LabelRule.human_steps` counts such steps as right.
"""

from collections.abc import Iterator

from formats import examples
from formats.examples import Columns, LabelRule, OutputRow, RowTally, TraceExample
from formats.records import TraceRecord, TurnRecord

COLUMNS: Columns = {
    "prompt": "string",
    "prefix": ["string"],
    "chosen": "string",
    "rejected": "string",
    "step": "int64",
    "trace": "int64",
    **examples.RATER_COLUMNS,
}
NO_PAIR = "no step with a positive and a negative alternative"


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    for facts, record in example.labeled_records(rule, tally):
        pairs = list(_build_pairs(record, rule))
        for pair in pairs:
            yield {**pair, "trace": facts.trace, **example.describe_rater(facts)}
        if not pairs:
            tally.leave_out(NO_PAIR)


def _build_pairs(record: TraceRecord, rule: LabelRule) -> Iterator[OutputRow]:
    prompt, prefix = record.problem.text, list[str]()
    turns = {turn.position: turn for turn in record.submissions[0].turns}
    for position in range(max(turns, default=-1) + 1):
        turn = turns.get(position)
        if turn is None:
            step = record.steps[position] if position < len(record.steps) else None
            if step is None or step.is_rateable or not step.options:
                return
            prefix.append(step.options[0].text)  # context, such as an observation
            continue
        better, worse = _split_by_rating(turn, rule)
        for chosen in better:
            for rejected in worse:
                yield {"prompt": prompt, "prefix": [*prefix], "chosen": chosen, "rejected": rejected, "step": position}
        taken = examples.get_taken_judgment(turn)
        if taken is None or taken.rating is None or taken.rating < 0:
            return
        prefix.append(taken.text)


def _split_by_rating(turn: TurnRecord, rule: LabelRule) -> tuple[list[str], list[str]]:
    shown = turn.shown or []
    better = [judgment.text for judgment in shown if judgment.rating == 1]
    if turn.written is not None and rule.human_steps == "positive":
        better.append(turn.written.text)
    return better, [judgment.text for judgment in shown if judgment.rating == -1]
