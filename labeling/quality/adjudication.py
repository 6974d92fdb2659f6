"""Adjudication: a person decides contested traces. Besides `resolve`, the only module that changes settlements.

A decision is final: later submissions are counted but do not change it. Every action here is logged.
"""

import datetime as dt

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import AddedSlot, Gold, Settlement, Step, Trace
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.models.gold import GoldUse
from labeling.models.project import Protocol
from labeling.quality import (
    consensus,
    gold,
    project_stats,
    resolution_reasons,
    resolution_state,
    resolve,
    running_totals,
)
from labeling.quality.step_labels import NEGATIVE, StepLabel

_NO_LIMIT = 2**15  # requests by a person may exceed the project's limit


class CannotDecide(Exception):
    """The trace cannot be decided or sent back. The message is meant for users."""

    def __init__(self, message: str, code: str) -> None:
        self.code = code
        super().__init__(message)


def list_contested(*, project_id: int) -> QuerySet[Settlement]:
    """Return contested traces that are not withdrawn, the longest waiting first."""
    rows = Settlement.objects.filter(project_id=project_id, state=SettlementState.CONTESTED, trace__withdrawn_at=None)
    return rows.select_related("trace__problem").order_by("changed_at", "trace_id")


def decide_trace(
    *,
    trace_id: int,
    first_error: int | None,
    note: str = "",
    becomes_gold: bool = False,
    seen: dt.datetime | None = None,
    by: User,
    now: dt.datetime,
) -> int:
    """Record the position of the first error, or None for no error. Return the number of the new consensus revision.

    Any submitted trace can be decided, and decided again. With `becomes_gold`, the decision also becomes gold, and
    contradicting gold is corrected. `seen` is the `changed_at` that the person saw: if the trace has changed since, for
    example because someone else decided it, `CannotDecide` is raised.
    """
    with transaction.atomic():
        row = _lock_settlement(trace_id, seen)
        _refuse_impossible(trace_id, first_error)
        row.consensus_revision = consensus.save_revision(
            trace_id=trace_id,
            project_id=row.project_id,
            first_error=first_error,
            source=ConsensusSource.PERSON,
            confidence=None,
            n_votes=row.n_votes,
            labels=_decided_labels(row, first_error),
            note=note,
            now=now,
            by=by,
        )
        _set_state(row, SettlementState.DECIDED, "decided", now)
        _log_event("trace.decided", row, by, now, first_error=first_error, revision=row.consensus_revision, note=note)
        if becomes_gold:
            _make_gold(row.trace, first_error, by, now)
    return row.consensus_revision


def send_back_trace(
    *, trace_id: int, note: str = "", seen: dt.datetime | None = None, by: User, now: dt.datetime
) -> None:
    """Request one more submission, even beyond the project's limit, and discard an earlier decision.

    Two calls with the same `seen` request one submission.
    """
    with transaction.atomic():
        row = _lock_settlement(trace_id, seen)
        last_round = (
            AddedSlot.objects.filter(trace_id=trace_id).order_by("-round").values_list("round", flat=True).first()
        )
        number = max(len(resolve.load_voting_submissions(trace_id)), last_round or 0) + 1
        if not queue.add_slot(trace_id=trace_id, round=number, now=now, limit=_NO_LIMIT):
            raise _not_served(row.trace)
        row.consensus_revision = 0
        _set_state(row, SettlementState.ASKED, resolve.SENT_BACK, now)
        _log_event("trace.sent_back", row, by, now, note=note)


def _not_served(trace: Trace) -> CannotDecide:
    if trace.withdrawn_at is not None:
        return CannotDecide(_("This trace was withdrawn and is no longer assigned."), "withdrawn")
    return CannotDecide(
        _("This trace is gold and is not assigned as work. Retire the gold first, or decide the trace yourself."),
        "gold",
    )


def _make_gold(trace: Trace, first_error: int | None, by: User, now: dt.datetime) -> None:
    existing = list(Gold.objects.active().filter(trace=trace).select_related("trace"))
    for row in existing:
        gold.correct_gold(gold=row, accepted_first_errors=[first_error], by=by, now=now)
    if not existing:
        gold.make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[first_error], by=by, now=now)
        gold.enqueue_gold(project_id=trace.project_id, use=GoldUse.HIDDEN, trace_ids=[trace.pk], now=now)


def _lock_settlement(trace_id: int, seen: dt.datetime | None) -> Settlement:
    resolution_state.lock_traces(trace_ids=[trace_id])
    row = Settlement.objects.select_related("trace", "project").filter(pk=trace_id).first()
    if row is None:
        raise CannotDecide(_("This trace has no submissions yet, so there is nothing to decide."), "not_submitted")
    if seen is not None and seen != row.changed_at:
        message = _("This trace has changed since you opened it. %(why)s Review it again before you decide.")
        why = resolution_reasons.describe_resolution_reason(row.reason)
        raise CannotDecide(message % {"why": why}, "changed")
    return row


def _refuse_impossible(trace_id: int, first_error: int | None) -> None:
    steps = Step.objects.filter(trace_id=trace_id, is_rateable=True)
    if first_error is not None and not steps.filter(position=first_error).exists():
        raise CannotDecide(_("This trace has no rateable step %(step)d.") % {"step": first_error + 1}, "no_such_step")
    if Trace.objects.filter(pk=trace_id, project__protocol=Protocol.LIVE).exists():
        raise CannotDecide(
            _("The steps of this trace were generated during labeling, so there is no shared step to decide on."),
            "live",
        )


def _decided_labels(row: Settlement, first_error: int | None) -> list[StepLabel]:
    """Return the raters' labels that agree with the decision, with confidence 1, and the decided first error."""
    labels = [
        label._replace(confidence=1.0) if not label.option else label
        for label in resolve.derive_labels(row.project, resolve.load_voting_submissions(row.trace_id), first_error)
        if label.option or not _contradicts(label, first_error)
    ]
    if first_error is not None and not any(label[:2] == (first_error, 0) for label in labels):
        labels.append(StepLabel(first_error, 0, NEGATIVE, 1.0, 0))
    return sorted(labels)


def _contradicts(label: StepLabel, first_error: int | None) -> bool:
    is_negative = label.rating == NEGATIVE
    if first_error is None or label.step < first_error:
        return is_negative
    return label.step == first_error and not is_negative


def _set_state(row: Settlement, state: SettlementState, reason: str, now: dt.datetime) -> None:
    row.state, row.reason, row.changed_at = state, reason, now
    with running_totals.track_totals(project_id=row.project_id, trace_ids=[row.trace_id]):
        row.save(update_fields=["state", "reason", "changed_at", "consensus_revision"])
    project_stats.mark_stats_stale(project_id=row.project_id, now=now)


def _log_event(what: str, row: Settlement, by: User, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(
        what=what, by=by, now=now, project=row.project_id, subject=f"trace:{row.trace_id}", detail=detail
    )
