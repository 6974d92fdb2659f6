"""Count new submissions of work, and score those of hidden gold, soon after they were made.

A submit does the same for both: it marks its assignment as due. Everything that differs between work and gold happens
here, because the time of a response would tell them apart. Work gets its tally and becomes due for settling; gold gets
its verdict, which may decide a pause.
"""

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import structlog
from django.db import DatabaseError, transaction

import rawsql
from labeling import queue, raters
from labeling.models import Assignment
from labeling.models.assignment import AssignmentPurpose
from labeling.quality import gold_monitor, settlements, suggestion_effects, tallies

logger = structlog.get_logger(__name__)

CHUNK = 20
RETRY_AFTER = dt.timedelta(minutes=10)


# The first submission of a rater who changed answers after a reveal has two revisions.
_COLUMNS = """id AS assignment_id, trace_id, rater_id, purpose, is_assisted, project_id,
  submitted_revision = 1 OR submitted_revision = 2 AND EXISTS (
    SELECT FROM labeling_exposure x WHERE x.assignment_id = labeling_assignment.id AND x.n_changed > 0) AS is_first"""
_FIND_DUE = f"""
SELECT {_COLUMNS} FROM labeling_assignment WHERE due_at <= %(now)s ORDER BY due_at, id LIMIT %(limit)s"""  # noqa: S608  our own constant
_LOAD_LOCKED = f"""
SELECT {_COLUMNS} FROM labeling_assignment
WHERE id = ANY (%(assignments)s::bigint[]) AND trace_id = ANY (%(traces)s::bigint[]) AND due_at IS NOT NULL
ORDER BY id"""  # noqa: S608  our own constant
_MARK_PROCESSED = "UPDATE labeling_assignment SET due_at = NULL WHERE id = ANY (%(assignments)s::bigint[])"


class _NewSubmission(NamedTuple):
    assignment_id: int
    trace_id: int
    rater_id: int
    purpose: str
    is_assisted: bool
    project_id: int
    is_first: bool  # and no correction


def process_new_submissions(*, now: dt.datetime, limit: int = 1000) -> int:
    """Count and score the submissions that are due. Return how many."""
    due = _fetch(_FIND_DUE, {"now": now, "limit": limit})
    return sum(_process_or_retry(due[start : start + CHUNK], now) for start in range(0, len(due), CHUNK))


def _fetch(sql: str, parameters: rawsql.Parameters) -> list[_NewSubmission]:
    return list(itertools.starmap(_NewSubmission, rawsql.fetch_rows(sql, parameters)))


def _process_or_retry(due: Sequence[_NewSubmission], now: dt.datetime) -> int:
    """Process submissions together or, if that fails, one by one, so that one of them does not block the others."""
    try:
        return _process(due, now)
    except DatabaseError:
        raise  # not caused by a submission; the next round retries
    except Exception:
        if len(due) > 1:
            return sum(_process_or_retry([each], now) for each in due)
        failed = due[0].assignment_id
        logger.exception("submission.not_counted", assignment=failed)
        Assignment.objects.filter(pk=failed, due_at__isnull=False).update(due_at=now + RETRY_AFTER)
        return 0


def _process(due: Sequence[_NewSubmission], now: dt.datetime) -> int:
    """Leave out traces that are being submitted right now: their submissions stay due."""
    with transaction.atomic():
        locked = settlements.lock_traces(trace_ids=sorted({each.trace_id for each in due}), skips=True)
        rows = _fetch(_LOAD_LOCKED, {"assignments": [each.assignment_id for each in due], "traces": locked})
        for trace_id in sorted({row.trace_id for row in rows if row.purpose == AssignmentPurpose.WORK}):
            tallies.tally_trace(trace_id=trace_id, now=now)
        n_submitted = Counter(row.rater_id for row in rows if row.is_first)
        raters.count_toward_pause(n_submitted=n_submitted, now=now)
        for row in rows:
            _score(row, now)
        _return_assisted_slots(rows, now)
        rawsql.fetch_rows(_MARK_PROCESSED, {"assignments": [row.assignment_id for row in rows]})
    for project_id in sorted({row.project_id for row in rows if row.purpose == AssignmentPurpose.GOLD}):
        suggestion_effects.stop_if_harmful(project_id=project_id, now=now)
    return len(rows)


def _return_assisted_slots(submissions: Sequence[_NewSubmission], now: dt.datetime) -> None:
    """Give the slots of raters who saw a machine's labels to others: their labels do not vote."""
    work = [row.assignment_id for row in submissions if row.is_assisted and row.purpose == AssignmentPurpose.WORK]
    rows = list(Assignment.objects.filter(pk__in=work, holds_slot=True).order_by("pk")) if work else []
    if rows:
        Assignment.objects.filter(pk__in=[row.pk for row in rows]).update(holds_slot=False)
        queue.return_slots(assignments=rows, now=now)


def _score(submission: _NewSubmission, now: dt.datetime) -> None:
    if submission.purpose == AssignmentPurpose.GOLD:
        answer = gold_monitor.record_gold_answer(assignment_id=submission.assignment_id, now=now)
        if answer is not None:
            gold_monitor.pause_if_below_threshold(answer=answer, now=now)
