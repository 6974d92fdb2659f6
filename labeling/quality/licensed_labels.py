"""Labels of licensed machines: which traces they cover, and how they settle traces. The only module that changes them.

A machine-assisted result is stored in `LicensedLabel` and in the state ASSISTED, never as a consensus, so that every
figure and dataset of people stays as it is. People who label the trace anyway settle it as usual: their result counts.
"""

import datetime as dt
from collections.abc import Mapping, Sequence

from django.db import transaction

from labeling import queue
from labeling.models import LicensedLabel
from labeling.models.licensed_label import LicensedRole
from labeling.models.queue import SamplingSource
from labeling.quality import redundancy, settlements
from labeling.quality.redundancy import ResolutionCourse
from labeling.quality.submitted_reports import RevisionReport

_WORK_SOURCES = (
    SamplingSource.UNIFORM,
    SamplingSource.POLICY,
    SamplingSource.RESERVE,
    SamplingSource.CHOSEN,
    SamplingSource.TOP_UP,
    SamplingSource.OPINION,
)


def add_labels(*, labels: Sequence[LicensedLabel], now: dt.datetime) -> int:
    """Store labels for traces that have none, and have these traces resolved. Return how many are new."""
    with transaction.atomic():
        locked = settlements.lock_traces(trace_ids=[label.trace_id for label in labels])
        taken = set(LicensedLabel.objects.filter(trace__in=locked).values_list("trace", flat=True))
        new = [label for label in labels if label.trace_id in locked and label.trace_id not in taken]
        LicensedLabel.objects.bulk_create(new)
        settlements.mark_imported_due(
            trace_ids=[label.trace_id for label in new if label.role != LicensedRole.RETEST], now=now
        )
    return len(new)


def weigh_with_people(
    label: LicensedLabel, submissions: Sequence[RevisionReport], *, overlap: int, added: int, set_aside: int
) -> tuple[str, int | None] | None:
    """Return the reason and the first error if the machine's label settles the trace, alone or with those of people."""
    if not submissions:
        return ("licensed", label.first_error) if label.role == LicensedRole.SETTLE else None
    own = RevisionReport(0, 0, label.trace_id, label.rater_id, label.first_error, 0, is_blind=False)
    weighed = redundancy.weigh_votes([*submissions, own], overlap=overlap, added=added, set_aside=set_aside)
    return ("licensed_vote", weighed.first_error) if weighed.course == ResolutionCourse.SETTLED else None


def save_results(*, results: Mapping[int, tuple[int | None, int] | None], project_id: int, now: dt.datetime) -> None:
    """Store for each trace its machine-assisted first error and the number of people behind it, or None for no result.
    Settled traces are no longer assigned; those that are no longer settled are assigned again. The caller has locked
    the traces."""
    reopened = []
    for row in LicensedLabel.objects.filter(trace__in=results):
        result = results[row.trace_id]
        if row.settled_at is not None and result is None:
            reopened.append(row.trace_id)
        row.settled_first_error, row.n_people = result or (None, 0)
        row.settled_at = (row.settled_at or now) if result else None
        row.save(update_fields=["settled_first_error", "n_people", "settled_at"])
    if reopened:
        queue.reopen_entries(trace_ids=reopened, now=now)
    settled = [trace for trace, result in results.items() if result is not None]
    for source in _WORK_SOURCES if settled else ():
        queue.close_entries(project_id=project_id, arm=source, trace_ids=settled, now=now)


def withdraw_labels(*, license_id: int, now: dt.datetime, only_unsettled: bool) -> int:
    """Let labels of an ended license no longer count. Traces that they settled go back to people. Return how many."""
    rows = LicensedLabel.objects.active().filter(license=license_id)
    rows = rows.filter(settled_at=None) if only_unsettled else rows
    trace_ids = sorted(rows.values_list("trace", flat=True))
    for start in range(0, len(trace_ids), 500):
        with transaction.atomic():
            locked = settlements.lock_traces(trace_ids=trace_ids[start : start + 500])
            settled = LicensedLabel.objects.filter(trace__in=locked, settled_at__isnull=False)
            reopened = sorted(settled.values_list("trace", flat=True))
            LicensedLabel.objects.filter(trace__in=locked).update(
                withdrawn_at=now, settled_at=None, settled_first_error=None, n_people=0
            )
            queue.reopen_entries(trace_ids=reopened, now=now)
            settlements.mark_imported_due(trace_ids=reopened, now=now)
    return len(trace_ids)
