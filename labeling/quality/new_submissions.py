"""Count new submissions of work, and score those of hidden gold, soon after they were made.

A submit does the same for both: it marks its assignment as due. Everything that differs between work and gold happens
here, because the time of a response would tell them apart. Work gets its tally and becomes due for settling; gold gets
its verdict, which may decide a pause.
"""

import datetime as dt
from collections import Counter
from collections.abc import Sequence

import structlog
from django.db import DatabaseError, transaction

from labeling import raters
from labeling.models import Assignment
from labeling.models.assignment import AssignmentPurpose
from labeling.quality import gold_monitor, settlements, tallies

logger = structlog.get_logger(__name__)

CHUNK = 20
RETRY_AFTER = dt.timedelta(minutes=10)


def process_new_submissions(*, now: dt.datetime, limit: int = 1000) -> int:
    """Count and score the submissions that are due. Return how many."""
    due = Assignment.objects.filter(due_at__lte=now).order_by("due_at", "pk").values_list("pk", flat=True)
    return sum(_process_or_retry(chunk, now) for chunk in _split(list(due[:limit])))


def _split(ids: Sequence[int]) -> list[Sequence[int]]:
    return [ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK)]


def _process_or_retry(ids: Sequence[int], now: dt.datetime) -> int:
    """Process submissions together or, if that fails, one by one, so that one of them does not block the others."""
    try:
        return _process(ids, now)
    except DatabaseError:
        raise  # not caused by a submission; the next round retries
    except Exception:
        if len(ids) > 1:
            return sum(_process_or_retry([each], now) for each in ids)
        logger.exception("submission.not_counted", assignment=ids[0])
        Assignment.objects.filter(pk=ids[0], due_at__isnull=False).update(due_at=now + RETRY_AFTER)
        return 0


def _process(ids: Sequence[int], now: dt.datetime) -> int:
    """Leave out traces that are being submitted right now: their submissions stay due."""
    with transaction.atomic():
        traces = Assignment.objects.filter(pk__in=ids).values_list("trace_id", flat=True)
        locked = settlements.lock_traces(trace_ids=sorted(set(traces)), skips=True)
        rows = list(Assignment.objects.filter(pk__in=ids, trace_id__in=locked, due_at__isnull=False).order_by("pk"))
        for trace_id in sorted({row.trace_id for row in rows if row.purpose == AssignmentPurpose.WORK}):
            tallies.tally_trace(trace_id=trace_id, now=now)
        n_submitted = Counter(row.rater_id for row in rows if row.submitted_revision == 1)
        raters.count_toward_pause(n_submitted=n_submitted, now=now)
        for row in rows:
            _score(row, now)
        Assignment.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=None)
    return len(rows)


def _score(assignment: Assignment, now: dt.datetime) -> None:
    if assignment.purpose == AssignmentPurpose.GOLD:
        answer = gold_monitor.record_gold_answer(assignment_id=assignment.pk, now=now)
        if answer is not None:
            gold_monitor.pause_if_below_threshold(answer=answer, now=now)
