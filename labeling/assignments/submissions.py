"""Makes submissions: the immutable revisions of what an assignment ended with."""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction

import rawsql
from accounts.models import User
from labeling import onboarding, quality, queue
from labeling.assignments import answer_sheet, corrections, edits, event_log, merge, persist
from labeling.assignments.answer_sheet import AnswerSheet, AssignmentFacts, StepReviewRow
from labeling.assignments.edit_batch import EditBatch, IncomingEdit, validate_batch, validate_reason
from labeling.assignments.errors import AssignmentError, ConflictingEdits, SubmissionIncomplete
from labeling.assignments.merge import MergeResult
from labeling.models import Judgment, StepReview, Submission
from labeling.models.assignment import OPEN_STATES, AssignmentPurpose, AssignmentState, FinishReason, Population
from labeling.projects import protocols
from labeling.quality import gold_scoring

# Brings the turns of a revision into the form in which they are submitted.


def finalize_step_reviews(*, standing: AnswerSheet, now: dt.datetime) -> None:
    """Say of each turn what was shown and where the path went on, and drop what lies behind the first error."""
    end = protocols.find_end(standing.facts.protocol, standing.rated())
    kept = {position: turn for position, turn in standing.turns.items() if end is None or position <= end}
    if len(kept) < len(standing.turns):
        _delete_after_first_error(standing, end)
    changed = {position: _finalize_step_review(standing, position, end) for position in kept}
    persist.update_step_reviews(
        standing=standing, turns={at: turn for at, turn in changed.items() if turn != standing.turns[at]}, now=now
    )


def _finalize_step_review(standing: AnswerSheet, position: int, end: int | None) -> StepReviewRow:
    """On a path that stood before it was rated, the way goes on with the trace's own option, except where it ends."""
    turn, step = standing.turns[position], standing.steps[position]
    if not (standing.is_pregenerated and step.is_rateable and step.options):
        return turn
    has_alternatives = any((position, option) in standing.judgments for option in range(1, len(step.options)))
    own_only = position != end and not has_alternatives and turn.shown in (None, "0")
    shown = "0" if own_only else " ".join(str(option) for option in range(len(step.options)))
    return turn._replace(shown=shown, chosen=None if position == end else 0)


def _delete_after_first_error(standing: AnswerSheet, end: int | None) -> None:
    behind = StepReview.objects.filter(
        assignment_id=standing.facts.assignment, revision=standing.facts.revision, step__position__gt=end
    )
    Judgment.objects.filter(turn__in=behind).delete()
    behind.delete()


_INSERT_AND_UPDATE = rawsql.load_sql(__file__, "submit.sql")
_EVENT_OF_ENDING = {FinishReason.GIVE_UP: "trace.given_up", FinishReason.BAD_PROBLEM: "problem.reported"}


def submit(
    *,
    assignment_id: int,
    rater_id: int,
    client: str,
    writes: Sequence[IncomingEdit] = (),
    now: dt.datetime,
    by: User | None,
    reason: str = "",
    revision: int | None = None,
    ending: FinishReason | None = None,
    active_ms: int = 0,
) -> Submission:
    """Keep the remaining writes and submit: as the protocol says, or with an ending of the rater's own, which asks no
    protocol. A second click gives the same submission; `revision`, where the client says which one it means, keeps a
    message that was long on its way from ending a correction begun since. `active_ms` came after the last
    write.

    Raises Incomplete or OthersStand: then the writes are kept, and nothing is submitted. It commits what it keeps, so
    do not call it inside a transaction that an error would undo."""
    batch, asked = (
        validate_batch(assignment_id, rater_id, client, writes),
        _SubmitOptions(ending, validate_reason(reason), revision, by, max(0, active_ms)),
    )
    return _finish_unlocked(batch, asked, now) or _finish_locked(batch, asked, now)


# The rater cannot go on; the problem itself is bad. What there is, is submitted.
give_up = partial(submit, ending=FinishReason.GIVE_UP)
report_problem = partial(submit, ending=FinishReason.BAD_PROBLEM)


class _SubmitOptions(NamedTuple):
    """How the rater wants to end."""

    ending: FinishReason | None  # None: as the protocol says
    note: str
    revision: int | None
    by: User | None
    active_ms: int


def _finish_unlocked(batch: EditBatch, asked: _SubmitOptions, now: dt.datetime) -> Submission | None:
    """Read first, and locked by the statement that writes, if all is still as it was read. None where it is not, or
    where there is anything to do besides; then nothing was written."""
    found = answer_sheet.load_answer_sheet(batch, steps=None)
    met = merge.merge_batch(found, batch, now=now)
    if not _is_plain(found, asked) or _find_submit_fault(found, met, asked):
        return None
    with transaction.atomic():
        if met.arrivals and persist.persist_merge(standing=found, meeting=met, client=batch.client, now=now) is None:
            return None
        return _make_submission(_merged_sheet(found, met), asked, now)


def _is_plain(found: AnswerSheet, asked: _SubmitOptions) -> bool:
    """In the hands of a rater who belongs here, on a trace that is read, and no message of long ago."""
    facts = found.facts
    is_at_work = facts.state == AssignmentState.OPENED or facts.is_reopened
    return is_at_work and not (facts.is_removed or facts.is_withdrawn or _is_outdated(facts, asked))


def _finish_locked(batch: EditBatch, asked: _SubmitOptions, now: dt.datetime) -> Submission:
    with transaction.atomic():
        edits.lock_assignment(batch=batch, now=now, and_trace=True)
        found = answer_sheet.load_answer_sheet(batch, steps=None)
        met = merge.merge_batch(found, batch, now=now)
        persist.persist_merge(standing=found, meeting=met, client=batch.client, now=now)
        event_log.log_late_edits(standing=found, meeting=met, now=now)
        earlier = _earlier_submission(found, asked)
        if earlier is not None:
            return earlier
        fault = _find_submit_fault(found, met, asked)
        if fault is None:
            made = _make_submission(_merged_sheet(found, met), asked, now)
            if made is None:
                raise RuntimeError(f"assignment {batch.assignment_id} moved while it was locked")
            return made
    raise fault


def _earlier_submission(found: AnswerSheet, asked: _SubmitOptions) -> Submission | None:
    """What this message would make has been made already."""
    facts = found.facts
    if not found.is_closed and not _is_outdated(facts, asked):
        return None
    return Submission.objects.get(assignment_id=facts.assignment, revision=facts.submitted_revision)


def _is_outdated(facts: AssignmentFacts, asked: _SubmitOptions) -> bool:
    return asked.revision is not None and asked.revision <= facts.submitted_revision


def _find_submit_fault(found: AnswerSheet, met: MergeResult, asked: _SubmitOptions) -> AssignmentError | None:
    """Why this cannot be submitted yet."""
    if met.lost:
        return ConflictingEdits(met.lost)
    rated = _merged_sheet(found, met).rated()
    state = protocols.submit_state(found.facts.protocol, rated)
    return None if asked.ending or state.is_ready else SubmissionIncomplete(state)


def _merged_sheet(found: AnswerSheet, met: MergeResult) -> AnswerSheet:
    """What stands when the batch has been kept."""
    facts = found.facts
    if met.arrivals or facts.state == AssignmentState.HELD:
        state = AssignmentState.OPENED if facts.state == AssignmentState.HELD else facts.state
        facts = facts._replace(version=facts.version + 1, state=state)
    turns, judgments = {**found.turns, **met.turns}, {**found.judgments, **met.judgments}
    return AnswerSheet(facts, found.steps, turns, judgments, found.history)


def _make_submission(after: AnswerSheet, asked: _SubmitOptions, now: dt.datetime) -> Submission | None:
    """None, and nothing written, where the assignment is not as it was read."""
    facts = after.facts
    ending = asked.ending or protocols.derive_finish_reason(facts.protocol, after.rated())
    is_late = facts.state not in (*OPEN_STATES, AssignmentState.SUBMITTED)
    counts_as = _late_population(facts, now) if is_late else None
    made = _build_submission(after, ending, asked, now)
    if not _insert_submission(made, facts, counts_as, now):
        return None
    finalize_step_reviews(standing=after, now=now)
    detail = {"revision": facts.revision, "finish_reason": ending.value, "was_late": is_late, "counts_as": counts_as}
    event_log.log_assignment_event(
        what=_EVENT_OF_ENDING.get(ending, "submission.made"), facts=facts, by=asked.by, now=now, **detail
    )
    _apply_consequences(facts, asked.by, now)
    if facts.is_reopened:
        corrections.close_request_as_corrected(assignment_id=facts.assignment, by=asked.by, now=now)
    return made


def _apply_consequences(facts: AssignmentFacts, by: User | None, now: dt.datetime) -> None:
    """What the submission means for others: gold is scored at once, work is counted and looked at soon afterwards. On
    the way in it decides where its rater goes on."""
    if facts.purpose == AssignmentPurpose.WORK:
        quality.tally_trace(trace_id=facts.trace, now=now)
    elif facts.purpose in gold_scoring.GOLD_USE_OF_PURPOSE:
        quality.record_gold_answer(assignment_id=facts.assignment, now=now)
    if facts.purpose in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
        onboarding.handle_submission(assignment_id=facts.assignment, by=by, now=now)


def _late_population(facts: AssignmentFacts, now: dt.datetime) -> Population:
    """What a submission counts as whose trace had gone back: it has its place where a slot is free, and otherwise is
    one more than was asked for. Nobody waits for one of a withdrawn trace or of a removed rater."""
    if facts.is_removed or facts.is_withdrawn:
        return Population.EXTRA
    return queue.take_late_slot(assignment_id=facts.assignment, now=now) or Population.EXTRA


def _build_submission(after: AnswerSheet, ending: FinishReason, asked: _SubmitOptions, now: dt.datetime) -> Submission:
    facts = after.facts
    spent = sum(turn.active_ms or 0 for turn in after.turns.values()) + asked.active_ms
    return Submission(
        project_id=facts.project,
        assignment_id=facts.assignment,
        revision=facts.revision,
        submitted_at=now,
        finish_reason=ending.value,
        finish_note=asked.note,
        total_ms=min(facts.most_ms(now), spent),
        is_quality_control=facts.purpose == AssignmentPurpose.GOLD,
        is_screening=facts.purpose == AssignmentPurpose.SCREENING,
    )


def _insert_submission(
    made: Submission, facts: AssignmentFacts, counts_as: Population | None, now: dt.datetime
) -> bool:
    """Write the submission and its assignment. Return False, and write neither, if the assignment is not as it was
    read."""
    found = rawsql.fetch_rows(
        _INSERT_AND_UPDATE,
        {
            "assignment": facts.assignment,
            "state": facts.state,
            "version": facts.version,
            "revision": facts.revision,
            "submitted_revision": facts.submitted_revision,
            "is_reopened": facts.is_reopened,
            "now": now,
            "finish_reason": made.finish_reason,
            "finish_note": made.finish_note,
            "total_ms": made.total_ms,
            "is_quality_control": made.is_quality_control,
            "is_screening": made.is_screening,
            "population": counts_as,
            # A slot that was given back and taken again is held again.
            "holds_slot": None if counts_as is None else counts_as != Population.EXTRA,
        },
    )
    for (pk,) in found:
        made.pk, made._state.adding = pk, False
    return bool(found)
