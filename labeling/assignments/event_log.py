"""What the log says of judging: submissions, corrections, skips, and work that arrives where nobody waits for it."""

import datetime as dt

from accounts.models import User
from events import audit_log
from events.models import Event
from labeling.assignments.answer_sheet import AnswerSheet, AssignmentFacts
from labeling.assignments.merge import MergeResult


def log_late_edits(*, standing: AnswerSheet, meeting: MergeResult, now: dt.datetime) -> None:
    """Ratings came for a withdrawn trace, or of a removed rater: kept, and the lead is told once of each."""
    if not meeting.arrivals:
        return
    for what, happened in (
        ("writes.arrived_from_removed_rater", standing.facts.is_removed),
        ("writes.arrived_for_withdrawn_trace", standing.facts.is_withdrawn),
    ):
        if (
            happened
            and not Event.objects.filter(subject=assignment_subject(standing.facts.assignment), what=what).exists()
        ):
            log_assignment_event(what=what, facts=standing.facts, by=None, now=now)


def log_assignment_event(
    *, what: str, facts: AssignmentFacts, by: User | int | None, now: dt.datetime, **detail: object
) -> None:
    audit_log.log_event(
        what=what, by=by, now=now, project=facts.project, subject=assignment_subject(facts.assignment), detail=detail
    )


def assignment_subject(assignment_id: int) -> str:
    return f"assignment:{assignment_id}"
