"""A person decides where raters differ. With `settling` alone writes settlements and consensus.

What was decided stays: later readings are counted, and change nothing of it. Every act here is an event.
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

_NO_LIMIT = 2**15  # a person has asked


class CannotDecide(Exception):
    """What was asked for cannot be said of this trace. `str()` of it may be shown to people."""


def list_contested(*, project_id: int) -> QuerySet[Settlement]:
    """The queue of whoever decides: what has waited longest comes first. Nobody waits for what was withdrawn."""
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
    """The first error is at this position, or there is none. Gives the number of the consensus revision. Any trace that
    somebody has read can be decided, not contested ones alone; deciding again makes a new revision. The decision
    `becomes_gold` where it is to be known of the trace from now on: gold that says otherwise is corrected. `seen` is,
    where it is told, since when the trace stood as this person saw it: of two who decide the later one is refused."""
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
    """Ask for one more reading, beyond the project's limit where need be. A decision that stood no longer does. Pressed
    twice with the same `seen`, one is asked for."""
    with transaction.atomic():
        row = _lock_settlement(trace_id, seen)
        asked = AddedSlot.objects.filter(trace_id=trace_id).order_by("-round").values_list("round", flat=True).first()
        number = max(len(resolve.load_voting_readings(trace_id)), asked or 0) + 1
        if not queue.add_slot(trace_id=trace_id, round=number, now=now, limit=_NO_LIMIT):
            raise CannotDecide(_explain_not_served(row.trace))
        row.consensus_revision = 0
        _set_state(row, SettlementState.ASKED, resolve.SENT_BACK, now)
        _log_event("trace.sent_back", row, by, now, note=note)


def _explain_not_served(trace: Trace) -> str:
    if trace.withdrawn_at is not None:
        return _("This trace was withdrawn: nobody is given it any more.")
    return _("This trace is gold: nobody reads it as work. Retire the gold first, or decide it yourself.")


def _make_gold(trace: Trace, first_error: int | None, by: User, now: dt.datetime) -> None:
    known = list(Gold.objects.active().filter(trace=trace).select_related("trace"))
    for each in known:
        gold.correct_gold(gold=each, accepted_first_errors=[first_error], by=by, now=now)
    if not known:
        gold.make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[first_error], by=by, now=now)
        gold.enqueue_gold(project_id=trace.project_id, use=GoldUse.HIDDEN, trace_ids=[trace.pk], now=now)


def _lock_settlement(trace_id: int, seen: dt.datetime | None) -> Settlement:
    resolution_state.lock_traces(trace_ids=[trace_id])
    row = Settlement.objects.select_related("trace", "project").filter(pk=trace_id).first()
    if row is None:
        raise CannotDecide(_("Nobody has submitted this trace yet: there is nothing to decide."))
    if seen is not None and seen != row.changed_at:
        told = _("This trace stands elsewhere than when you opened it. %(why)s Look again before you decide.")
        raise CannotDecide(told % {"why": resolution_reasons.describe_resolution_reason(row.reason)})
    return row


def _refuse_impossible(trace_id: int, first_error: int | None) -> None:
    steps = Step.objects.filter(trace_id=trace_id, is_rateable=True)
    if first_error is not None and not steps.filter(position=first_error).exists():
        raise CannotDecide(_("This trace has no step %(step)d that is rated.") % {"step": first_error + 1})
    if Trace.objects.filter(pk=trace_id, project__protocol=Protocol.LIVE).exists():
        raise CannotDecide(_("The steps of this trace were generated while it was rated: there is none to decide on."))


def _decided_labels(row: Settlement, first_error: int | None) -> list[StepLabel]:
    """What follows from the decision: the first error where it was put, nothing negative before it, raters' labels of
    the rest, as sure as the decision is."""
    found = resolve.derive_labels(row.project, resolve.load_voting_readings(row.trace_id), first_error)
    kept = [
        label._replace(confidence=1.0) if not label.option else label
        for label in found
        if label.option or not _contradicts(label, first_error)
    ]
    if first_error is not None and not any(label[:2] == (first_error, 0) for label in kept):
        kept.append(StepLabel(first_error, 0, NEGATIVE, 1.0, 0))
    return sorted(kept)


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
