"""Whether the final answer is right: a row for each trace whose outcome is known, for outcome reward models (ORMs)."""

from collections.abc import Iterator

from formats.columns import Columns, OutputRow
from formats.examples import RowTally, TraceExample
from formats.labeled_paths import LabelRule
from formats.records import TraceRecord

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
OUTCOME_UNKNOWN = "outcome not known"


def write_rows(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    record = example.record
    if record.is_right is None:
        tally.leave_out(OUTCOME_UNKNOWN)
        return
    answer = record.problem.answer
    yield {
        "prompt": record.problem.text,
        "completion": _join_steps(record),
        "is_right": record.is_right,
        "outcome_by": record.outcome_by,
        "grader": record.outcome_grader,
        "answer": record.answer,
        "reference_answer": answer if isinstance(answer, str) else None,
        "policy": example.facts.policy or "",
        "trace": example.facts.trace,
    }


def _join_steps(record: TraceRecord) -> str:
    """All steps with a line between them."""
    return "\n".join(step.options[0].text for step in record.steps if step.options)
