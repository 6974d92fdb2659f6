"""Events of assignments: submissions, corrections, skips, and edits that arrive for withdrawn traces."""

import datetime as dt

from accounts.models import User
from events import audit_log
from events.models import Event
from labeling.assignments.answer_sheet import AnswerSheet, AssignmentFacts
from labeling.assignments.merge import MergeResult


def log_unexpected_edits(*, sheet: AnswerSheet, merged: MergeResult, now: dt.datetime) -> None:
    """Log once per assignment that edits arrived for a withdrawn trace or from a removed rater. They are kept."""
    if not merged.new_edits:
        return
    facts = sheet.facts
    for what, applies in (
        ("writes.arrived_from_removed_rater", facts.is_removed),
        ("writes.arrived_for_withdrawn_trace", facts.is_withdrawn),
    ):
        if applies and not Event.objects.filter(subject=assignment_subject(facts.assignment), what=what).exists():
            log_assignment_event(what=what, facts=facts, by=None, now=now)


def log_assignment_event(
    *, what: str, facts: AssignmentFacts, by: User | int | None, now: dt.datetime, **detail: object
) -> None:
    audit_log.log_event(
        what=what, by=by, now=now, project=facts.project, subject=assignment_subject(facts.assignment), detail=detail
    )


def assignment_subject(assignment_id: int) -> str:
    return f"assignment:{assignment_id}"
