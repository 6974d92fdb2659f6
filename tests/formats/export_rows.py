"""Readings and examples without a database."""

from typing import Any

from formats.examples import AgreedLabels, TraceExample
from formats.records import TraceRecord
from formats.rows import ExportRow, RowFacts

_NOTHING: dict[str, Any] = dict.fromkeys(RowFacts._fields)
_TEXTS = ("finish_note", "machine", "problem_ref", "domain", "ref", "outcome_by", "outcome_grader")
EXPORT_FACTS = RowFacts(
    **{**_NOTHING, **dict.fromkeys(_TEXTS, ""), "kind": "pregenerated", "text": "What?", "n_steps": 3, "trace": 1}
)._replace(has_reference_answer=True, submission=1, revision=1)


def make_export_row(record: TraceRecord, **changes: Any) -> ExportRow:
    submission = record.submissions[0] if record.submissions else None
    facts = EXPORT_FACTS._replace(
        text=record.problem.text, labeler=submission.labeler if submission else None, **changes
    )
    return ExportRow(facts if submission else facts._replace(submission=None), None, record)


def make_example(
    *records: TraceRecord, agreed: AgreedLabels | None = None, is_consensus: bool = False, **changes: Any
) -> TraceExample:
    return TraceExample(
        [make_export_row(each, **changes) for each in records], agreed=agreed, is_consensus=is_consensus
    )
