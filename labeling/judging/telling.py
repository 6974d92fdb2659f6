"""What the log says of judging: submissions, corrections, skips, and work that arrives where nobody waits for it."""

import datetime as dt

from accounts.models import User
from events import log
from events.models import Event
from labeling.judging.meeting import Meeting
from labeling.judging.standing import Facts, Standing


def late_arrival(*, standing: Standing, meeting: Meeting, now: dt.datetime) -> None:
    """Ratings came for a withdrawn trace, or of a removed rater: kept, and the lead is told once of each."""
    if not meeting.arrivals:
        return
    for what, happened in (
        ("writes.arrived_from_removed_rater", standing.facts.is_removed),
        ("writes.arrived_for_withdrawn_trace", standing.facts.is_withdrawn),
    ):
        if happened and not Event.objects.filter(subject=subject(standing.facts.assignment), what=what).exists():
            tell(what=what, facts=standing.facts, by=None, now=now)


def tell(*, what: str, facts: Facts, by: User | int | None, now: dt.datetime, **detail: object) -> None:
    log.append(what=what, by=by, now=now, project=facts.project, subject=subject(facts.assignment), detail=detail)


def subject(assignment_id: int) -> str:
    return f"assignment:{assignment_id}"
