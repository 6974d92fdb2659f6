"""Readings and examples without a database."""

from typing import Any

from exports.formats.examples import Agreed, Example
from labeling.importing.records import TraceRecord
from labeling.readings import Facts, Reading

_NOTHING: dict[str, Any] = dict.fromkeys(Facts._fields)
_TEXTS = ("finish_note", "machine", "problem_ref", "domain", "ref", "outcome_by", "outcome_grader")
FACTS = Facts(
    **{**_NOTHING, **dict.fromkeys(_TEXTS, ""), "kind": "pregenerated", "text": "What?", "n_steps": 3, "trace": 1}
)._replace(has_reference_answer=True, submission=1, revision=1)


def reading(record: TraceRecord, **changes: Any) -> Reading:
    submission = record.submissions[0] if record.submissions else None
    facts = FACTS._replace(text=record.problem.text, labeler=submission.labeler if submission else None, **changes)
    return Reading(facts if submission else facts._replace(submission=None), None, record)


def example(*records: TraceRecord, agreed: Agreed | None = None, is_consensus: bool = False, **changes: Any) -> Example:
    return Example([reading(each, **changes) for each in records], agreed=agreed, is_consensus=is_consensus)
