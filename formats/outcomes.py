"""Outcomes: one row per trace with a known outcome, right or wrong, for outcome reward models (ORMs)."""

from collections.abc import Iterator

from formats.examples import Columns, LabelRule, OutputRow, RowTally, TraceExample

COLUMNS: Columns = {
    "prompt": "string",
    "completion": "string",
    "is_right": "bool",
    "outcome_by": "string",
    "grader": "string",
    "answer": "string",
    "reference_answer": "string",
    "policy": "string",
    "trace": "int64",
}
OUTCOME_UNKNOWN = "unknown outcome"


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    record = example.record
    if record.is_right is None:
        tally.leave_out(OUTCOME_UNKNOWN)
        return
    answer = record.problem.answer
    yield {
        "prompt": record.problem.text,
        "completion": "\n".join(step.options[0].text for step in record.steps if step.options),
        "is_right": record.is_right,
        "outcome_by": record.outcome_by,
        "grader": record.outcome_grader,
        "answer": record.answer,
        "reference_answer": answer if isinstance(answer, str) else None,
        "policy": example.facts.policy or "",
        "trace": example.facts.trace,
    }
