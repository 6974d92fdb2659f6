"""Split and merge the steps of a trace by hand, before anyone has opened or rated it.

The changed steps make a new trace, and the old one is withdrawn, because the texts of a trace never change. An event of
each of the two names the other one and the changes. The change can be undone until someone opens the new trace.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from django.db import transaction
from django.utils.translation import gettext as _
from msgspec import UNSET

from accounts.models import User
from events import audit_log
from events.models import Event
from formats.records import (
    OptionRecord,
    PartRecord,
    ProblemRecord,
    ProvenanceRecord,
    StepChange,
    StepRecord,
    TraceRecord,
)
from formats.step_changes import name_changed_segmenter
from labeling import queue
from labeling.models import Assignment, Gold, Option, OptionPart, PairedTrace, QueueEntry, Source, Step, Trace
from labeling.models.assignment import AssignmentState
from labeling.models.queue import SamplingSource
from labeling.models.trace import TraceKind
from labeling.quality.adjudication import withdraw_traces
from labeling.queue.slots import GOLD_SOURCES
from labeling.traces import stored_images, tags
from labeling.traces.record_changes import CannotChangeSteps, apply_changes, refuse_long
from labeling.traces.trace_rows import ImportRows, NumberedRecord, TraceRows, lock_project_import

_OPENED_STATES = (AssignmentState.OPENED, AssignmentState.SUBMITTED)
MADE, REPLACED, RESTORED = "trace.made_by_hand", "trace.replaced", "trace.restored"


def explain_fixed_steps(trace: Trace) -> str:
    """Return why the steps of a trace cannot be changed, "" if they can."""
    try:
        _refuse_fixed(trace)
    except CannotChangeSteps as error:
        return str(error)
    return ""


def has_changeable_steps(trace: Trace, *, assignments: Iterable[Assignment], is_gold: bool) -> bool:
    """Tell the same from rows that are already loaded."""
    try:
        _refuse_trace(trace, is_gold=is_gold)
        _refuse_opened(assignments)
    except CannotChangeSteps:
        return False
    return True


def load_step_records(trace: Trace) -> list[StepRecord]:
    """Load the steps of a trace with all their options and parts."""
    parts: dict[int, list[PartRecord]] = {}
    columns = ("option_id", "kind", "text", "name", "call_ref", "media_type", "image__digest")
    rows = OptionPart.objects.filter(option__step__trace=trace).order_by("option_id", "position").values_list(*columns)
    for option_id, kind, text, name, call_ref, media_type, digest in rows:
        parts.setdefault(option_id, []).append(PartRecord(kind, text, name, call_ref, media_type, digest=digest or ""))
    options: dict[int, list[OptionRecord]] = {}
    for row in Option.objects.filter(step__trace=trace).order_by("step_id", "position"):
        option = OptionRecord(row.text, row.origin, tuple(parts.get(row.pk, ())))
        options.setdefault(row.step_id, []).append(option)
    steps = Step.objects.filter(trace=trace, position__lt=trace.n_steps).order_by("position")
    return [
        StepRecord(
            options.get(step.pk, []), step.kind, step.is_rateable, step.separator, step.source_position, step.agent
        )
        for step in steps
    ]


def change_trace_steps(*, trace: Trace, changes: Sequence[StepChange], by: User, now: dt.datetime) -> Trace:
    """Replace a trace by one with changed steps, and return the new trace. Raises `CannotChangeSteps`."""
    changes = [change for change in changes if change.cuts or change.merges]
    if not changes:
        raise CannotChangeSteps(_("Nothing was changed. Split or merge at least one step."), "unchanged")
    with transaction.atomic():
        lock_project_import(trace.project_id)
        steps = apply_changes(load_step_records(trace), changes)
        reason = _("Steps changed by hand")
        entries = _withdraw(trace, reason, by, now)
        new = _find_or_add(trace, steps, now)
        queue.reinstate_traces(trace_ids=[new.pk], now=now, reason=reason, by=by)  # if an earlier change made it
        _enqueue(new, entries, now)
        for name in trace.tags.order_by("name").values_list("name", flat=True):
            tags.add_tag(project_id=trace.project_id, trace_ids=[new.pk], name=name, by=by, now=now)
        detail = {"changes": msgspec.to_builtins(changes)}
        _log(MADE, new, by, now, of=trace.pk, **detail)
        _log(REPLACED, trace, by, now, replaced_by=new.pk, **detail)
    return new


def find_replaced_trace(trace: Trace) -> Trace | None:
    """Return the trace that this one replaced by a change of its steps, if that is still withdrawn."""
    made = Event.objects.filter(subject=f"trace:{trace.pk}", what=MADE).order_by("-pk").first()
    if made is None or trace.withdrawn_at is not None:
        return None
    return Trace.objects.withdrawn().filter(project=trace.project_id, pk=made.detail["of"]).first()


def restore_steps(*, trace: Trace, by: User, now: dt.datetime) -> Trace:
    """Undo a change of steps: withdraw the new trace and assign the old one again. Raises `CannotChangeSteps`."""
    with transaction.atomic():
        lock_project_import(trace.project_id)
        _refuse_fixed(trace)
        old = find_replaced_trace(trace)
        if old is None:
            raise CannotChangeSteps(_("This trace did not replace another one that can be restored."), "not_changed")
        _withdraw(trace, _("Change of steps undone"), by, now)
        queue.reinstate_traces(trace_ids=[old.pk], now=now, reason=_("Change of steps undone"), by=by)
        _log(RESTORED, old, by, now, instead_of=trace.pk)
    return old


def _refuse_fixed(trace: Trace) -> None:
    _refuse_trace(trace, is_gold=Gold.objects.active().filter(trace=trace).exists())
    _refuse_opened(Assignment.objects.filter(trace=trace))


def _refuse_trace(trace: Trace, *, is_gold: bool) -> None:
    if trace.withdrawn_at is not None:
        raise CannotChangeSteps(_("The trace was withdrawn, so its steps cannot be changed."), "withdrawn")
    if trace.kind == TraceKind.LIVE:
        raise CannotChangeSteps(_("The steps were generated during labeling and cannot be changed."), "live")
    refuse_long(trace.n_steps)
    if is_gold:
        message = _("The trace is gold: its known answer refers to these steps. Retire the gold first.")
        raise CannotChangeSteps(message, "gold")


def _refuse_opened(assignments: Iterable[Assignment]) -> None:
    opened = [row for row in assignments if row.opened_at is not None or row.state in _OPENED_STATES]
    if any(row.submitted_revision for row in opened):
        message = _("The trace has ratings, and they refer to these steps, so its steps cannot be changed.")
        raise CannotChangeSteps(message, "rated")
    if opened:
        message = _("Someone has opened the trace, so its steps cannot be changed.")
        raise CannotChangeSteps(message, "opened")


def _withdraw(trace: Trace, reason: str, by: User, now: dt.datetime) -> list[QueueEntry]:
    """Withdraw a trace that no one has opened, and return the entries of work that it had in the queue."""
    trace = Trace.objects.select_for_update(no_key=True).get(pk=trace.pk)
    _refuse_fixed(trace)
    entries = list(QueueEntry.objects.filter(trace=trace).exclude(lane__arm__in=GOLD_SOURCES))
    withdraw_traces(project=trace.project, trace_ids=[trace.pk], reason=reason, by=by, now=now)
    # Again: a rater may have opened it before the withdrawal locked its assignments.
    _refuse_opened(Assignment.objects.filter(trace=trace))
    return entries


def _find_or_add(old: Trace, steps: list[StepRecord], now: dt.datetime) -> Trace:
    """Add the trace with these steps, or find the withdrawn one that an earlier change made."""
    rows = ImportRows()
    traces = TraceRows(old.project, old.source or Source(project=old.project), now, rows)
    traces.find_or_add([NumberedRecord(_make_record(old, steps), 0)])
    rows.insert()
    new = Trace.objects.get(pk=traces.by_record[0].pk)
    if not traces.added and new.withdrawn_at is None:
        message = _("The project already has a trace with these steps: trace %(n)d.")
        raise CannotChangeSteps(message % {"n": new.pk}, "exists")
    return new


def _enqueue(new: Trace, entries: Sequence[QueueEntry], now: dt.datetime) -> None:
    """Queue the new trace with as many slots as the old one had, if that was work."""
    slots = max((entry.slots for entry in entries), default=0)
    if slots and not QueueEntry.objects.filter(trace=new).exists():
        arm = SamplingSource.RESERVE if new.problem.is_reserve else SamplingSource.UNIFORM
        queue.enqueue(project_id=new.project_id, arm=arm, trace_ids=[new.pk], slots=slots, now=now)


def _make_record(old: Trace, steps: list[StepRecord]) -> TraceRecord:
    problem, paired = old.problem, PairedTrace.objects.filter(trace=old).first()
    return TraceRecord(
        problem=ProblemRecord(
            problem.text,
            problem.reference_answer if problem.has_reference_answer else UNSET,
            problem.reference_solution if problem.has_reference_solution else UNSET,
            problem.ref,
            problem.domain,
            stored_images.list_problem_images(problem),
        ),
        steps=steps,
        images=stored_images.list_trace_images(old),
        ref=old.ref,
        answer=old.answer,
        verifier_score=old.verifier_score,
        is_right=old.is_right,
        outcome_by=old.outcome_by,
        outcome_grader=old.outcome_grader,
        provenance=_make_provenance(old),
        pair=paired.pair if paired else "",
        pair_half=paired.half if paired else "",
        metadata=old.metadata,
        line=old.source_line,
    )


def _make_provenance(old: Trace) -> ProvenanceRecord:
    made = old.provenance
    segmenter = name_changed_segmenter("" if made is None else made.segmenter)
    if made is None:
        return ProvenanceRecord(segmenter=segmenter)
    names = made.base_model, made.policy, made.sampler, made.scaffold
    return ProvenanceRecord(*names, segmenter=segmenter, reasoning=made.reasoning, reasoning_by=made.reasoning_by)


def _log(what: str, trace: Trace, by: User, now: dt.datetime, **detail: Any) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=trace.project_id, subject=f"trace:{trace.pk}", detail=detail)
