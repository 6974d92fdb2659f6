"""The actions of leads on a trace: decide it, request another label, reopen it, or withdraw it. Every action is logged.

A decision is final: later submissions are counted but do not change it. Besides `resolve`, only this module changes
settlements.
"""

import datetime as dt
from collections.abc import Sequence

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import AddedSlot, Consensus, Gold, Project, Settlement, Step, Trace
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.models.gold import GoldUse
from labeling.models.project import Protocol
from labeling.quality import consensus, gold, project_stats, resolve, settlements
from labeling.quality.consensus import RevisionDraft

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
        draft = RevisionDraft(
            trace_id=trace_id,
            project_id=row.project_id,
            first_error=first_error,
            source=ConsensusSource.PERSON,
            n_votes=row.n_votes,
            labels=resolve.derive_decided_labels(row, first_error),
            note=note,
        )
        row.consensus_revision = consensus.save_revisions(drafts=[draft], now=now, by=by)[trace_id]
        _set_state(row, SettlementState.DECIDED, "decided", now)
        _log_event("trace.decided", row, by, now, first_error=first_error, revision=row.consensus_revision, note=note)
        if becomes_gold:
            _make_gold(row.trace, first_error, by, now)
    return row.consensus_revision


def send_back_trace(
    *, trace_id: int, note: str = "", seen: dt.datetime | None = None, n: int = 1, by: User | None, now: dt.datetime
) -> None:
    """Request `n` more submissions, even beyond the project's limit, and discard an earlier decision. The trace is
    resolved again when all of them have arrived.

    Two calls with the same `seen` request them once.
    """
    with transaction.atomic():
        row = _lock_settlement(trace_id, seen)
        last_round = AddedSlot.objects.filter(trace_id=trace_id).aggregate(last=Max("round", default=0))["last"]
        number = max(len(resolve.load_voting_submissions(trace_id)), last_round) + 1
        for place in range(n):
            if not queue.add_slot(trace_id=trace_id, round=number + place, now=now, limit=_NO_LIMIT):
                raise _not_served(row.trace)
        row.consensus_revision = 0
        _set_state(row, SettlementState.ASKED, resolve.SENT_BACK, now)
        _log_event("trace.sent_back", row, by, now, note=note, labels=n)


def reopen_trace(*, trace_id: int, note: str = "", seen: dt.datetime | None = None, by: User, now: dt.datetime) -> None:
    """Discard the consensus of a trace, so that it waits for a person's decision, or for a label that they request."""
    with transaction.atomic():
        row = _lock_settlement(trace_id, seen)
        if row.state not in settlements.RESOLVED_STATES:
            raise CannotDecide(_("This trace has no consensus, so there is nothing to reopen."), "not_resolved")
        row.consensus_revision = 0
        _set_state(row, SettlementState.CONTESTED, resolve.REOPENED, now)
        _log_event("trace.reopened", row, by, now, note=note)


def renew_decided_labels(*, trace_ids: Sequence[int], now: dt.datetime) -> None:
    """Derive the labels of decided traces again after submissions were set aside. The decision stays. The caller has
    locked the traces."""
    rows = Settlement.objects.filter(trace_id__in=trace_ids, state=SettlementState.DECIDED).select_related("project")
    for row in rows:
        decided = Consensus.objects.get(trace_id=row.trace_id, revision=row.consensus_revision)
        labels = resolve.derive_decided_labels(row, decided.first_error)
        if decided.labels == [list(label) for label in labels]:
            continue
        draft = RevisionDraft(
            trace_id=row.trace_id,
            project_id=row.project_id,
            first_error=decided.first_error,
            source=ConsensusSource.PERSON,
            n_votes=row.n_votes,
            labels=labels,
            note=decided.note,
        )
        row.consensus_revision = consensus.save_revisions(drafts=[draft], now=now, by=decided.made_by)[row.trace_id]
        row.save(update_fields=["consensus_revision"])


def withdraw_traces(
    *, project: Project, trace_ids: Sequence[int], reason: str, by: User | None, now: dt.datetime
) -> None:
    """Stop assigning these traces and exclude them from statistics. Open assignments can still be finished."""
    queue.withdraw_traces(trace_ids=trace_ids, now=now, reason=reason, by=by)
    project_stats.mark_existing_stats_stale(project_id=project.pk, now=now)


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
    settlements.lock_traces(trace_ids=[trace_id])
    row = Settlement.objects.select_related("trace", "project").filter(pk=trace_id).first()
    if row is None:
        raise CannotDecide(_("This trace has no submissions yet, so there is nothing to decide."), "not_submitted")
    if seen is not None and seen != row.changed_at:
        message = _("This trace has changed since you opened it. %(why)s Review it again before you decide.")
        why = settlements.RESOLUTION_REASONS[row.reason]
        raise CannotDecide(message % {"why": why}, "changed")
    return row


def _refuse_impossible(trace_id: int, first_error: int | None) -> None:
    steps = Step.objects.filter(trace_id=trace_id, is_rateable=True)
    if first_error is not None and not steps.filter(position=first_error).exists():
        raise CannotDecide(
            _("Step %(step)d of this trace cannot be rated. Choose a different step.") % {"step": first_error + 1},
            "no_such_step",
        )
    if Trace.objects.filter(pk=trace_id, project__protocol=Protocol.LIVE).exists():
        raise CannotDecide(
            _("The steps of this trace were generated during labeling, so there is no shared step to decide on."),
            "live",
        )


def _set_state(row: Settlement, state: SettlementState, reason: str, now: dt.datetime) -> None:
    row.state, row.reason, row.changed_at = state, reason, now
    with settlements.track_totals(project_id=row.project_id, trace_ids=[row.trace_id]):
        row.save(update_fields=["state", "reason", "changed_at", "consensus_revision"])
    project_stats.mark_stats_stale(project_id=row.project_id, now=now)


def _log_event(what: str, row: Settlement, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(
        what=what, by=by, now=now, project=row.project_id, subject=f"trace:{row.trace_id}", detail=detail
    )
