"""Whether the final answer is right: a row for each trace whose outcome is known, for outcome reward models (ORMs)."""

from collections.abc import Iterator

from exports.formats.columns import Columns, Row
from exports.formats.examples import Example
from exports.formats.path import Rule
from exports.formats.tally import Tally
from labeling.importing.records import TraceRecord

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
UNKNOWN = "outcome not known"


def rows(example: Example, rule: Rule, tally: Tally) -> Iterator[Row]:
    record = example.record
    if record.is_right is None:
        tally.leave_out(UNKNOWN)
        return
    answer = record.problem.answer
    yield {
        "prompt": record.problem.text,
        "completion": _whole(record),
        "is_right": record.is_right,
        "outcome_by": record.outcome_by,
        "grader": record.outcome_grader,
        "answer": record.answer,
        "reference_answer": answer if isinstance(answer, str) else None,
        "policy": example.facts.policy or "",
        "trace": example.facts.trace,
    }


def _whole(record: TraceRecord) -> str:
    """All steps with a line between them."""
    return "\n".join(step.options[0].text for step in record.steps if step.options)
