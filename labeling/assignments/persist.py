"""Persist what a merge made: new rows of the history, turns, judgments, and the assignment's new version.

One statement does it (`labeling/queue/record.sql`), and does nothing if the assignment is no longer as it was read. The
first message for a trace that was fetched ahead also opens it.
"""

import datetime as dt
import functools
from typing import Any

import rawsql
from labeling import queue
from labeling.assignments.answer_sheet import AnswerSheet, JudgmentRow, StepReviewRow
from labeling.assignments.merge import MergeResult, NewEdit
from labeling.models.assignment import AssignmentState

LEASE_RENEWAL_INTERVAL = dt.timedelta(minutes=1)


def persist_merge(*, standing: AnswerSheet, meeting: MergeResult, client: str, now: dt.datetime) -> int | None:
    """Write what arrived. Return the assignment's new version; None, and write nothing, if it has moved since it was
    read."""
    facts = standing.facts
    if not meeting.arrivals and facts.state != AssignmentState.HELD:
        return facts.version
    return queue.persist(
        as_read=queue.AsRead(
            facts.assignment, facts.version, facts.state, facts.revision, facts.submitted_revision, facts.is_reopened
        ),
        new_version=facts.version + 1,
        client=client,
        writes=[_edit_columns(arrival, standing) for arrival in meeting.arrivals],
        turns=[_step_review_columns(standing, *item) for item in meeting.turns.items()],
        judgments=[_judgment_columns(standing, *item) for item in meeting.judgments.items()],
        lease_ends_at=renewed_lease_end(standing, now),
        now=now,
    )


def update_step_reviews(*, standing: AnswerSheet, turns: dict[int, StepReviewRow], now: dt.datetime) -> None:
    """Replace what these turns show and chose, inside a transaction that moves the assignment itself."""
    facts = standing.facts
    for position, turn in turns.items():
        place = {"assignment": facts.assignment, "revision": facts.revision, "step": standing.steps[position].id}
        rawsql.fetch_rows(_CORRECT, {"shown": turn.shown, "chosen": turn.chosen, **place})


def renewed_lease_end(standing: AnswerSheet, now: dt.datetime) -> dt.datetime | None:
    """Until when this activity keeps the trace in the rater's hands; None where it is not in them. A lease that was
    renewed a moment ago stays: its end stands in an index, and PostgreSQL writes a row whose indexed columns stay the
    same without touching any index."""
    facts = standing.facts
    if facts.state not in (AssignmentState.HELD, AssignmentState.OPENED):
        return None
    lease, fresh = _lease_spans(facts.lease_seconds)
    stays = facts.lease_ends_at is not None and facts.lease_ends_at > now + fresh
    return facts.lease_ends_at if stays else now + lease


@functools.cache
def _lease_spans(seconds: int) -> tuple[dt.timedelta, dt.timedelta]:
    """How long it is, and how much of it is left where it was renewed a moment ago."""
    lease = dt.timedelta(seconds=seconds)
    return lease, lease - min(LEASE_RENEWAL_INTERVAL, lease / 10)


def _edit_columns(arrival: NewEdit, standing: AnswerSheet) -> dict[str, Any]:
    write = arrival.write
    return {
        "sequence": write.sequence,
        "seen": arrival.seen,
        "kind": write.kind,
        "step": write.step,
        "option": write.option,
        "rating": write.rating,
        "flagged": write.flagged,
        "category": write.category,
        "text": write.text,
        "active_ms": write.active_ms,
        "made_at": write.made_at,
        "was_late": standing.is_closed,
        "was_applied": arrival.was_applied,
    }


def _step_review_columns(standing: AnswerSheet, position: int, turn: StepReviewRow) -> dict[str, Any]:
    return {"step_id": standing.steps[position].id, **turn._asdict()}


def _judgment_columns(standing: AnswerSheet, place: tuple[int, int], judgment: JudgmentRow) -> dict[str, Any]:
    step = standing.steps[place[0]]
    return {"step_id": step.id, "option_id": step.options[place[1]], **judgment._asdict()}


_CORRECT = """
UPDATE labeling_stepreview SET shown = %(shown)s, chosen = %(chosen)s
WHERE assignment_id = %(assignment)s AND revision = %(revision)s AND step_id = %(step)s"""
