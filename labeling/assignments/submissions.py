"""End the work on an assignment: submit it or skip it. Each submit creates an immutable revision."""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from django.db import transaction

import rawsql
from accounts.models import User
from events import audit_log
from jobs import wakeups
from labeling import onboarding, queue
from labeling.assignments import answer_sheet, corrections, edits, merge, revealed_labels
from labeling.assignments.answer_sheet import (
    AnswerSheet,
    AssignmentFacts,
    EditBatch,
    IncomingEdit,
    JudgmentRow,
    StepReviewRow,
    validate_batch,
    validate_reason,
)
from labeling.assignments.errors import (
    AlreadySubmitted,
    AssignmentError,
    AssignmentNotOpen,
    AssignmentUnknown,
    ConflictingEdits,
    SkipLimitReached,
    SkipNotAllowed,
    SubmissionIncomplete,
    UnseenRatings,
)
from labeling.assignments.merge import MergeResult
from labeling.assignments.revealed_labels import FirstAnswers
from labeling.models import Assignment, Judgment, Project, Rater, StepReview, Submission, TraceAnswer
from labeling.models.assignment import OPEN_STATES, AssignmentPurpose, AssignmentState, FinishReason, Population
from labeling.projects import budgets, protocols, trace_questions
from labeling.quality import gold_monitor, settlements

_PARTS = rawsql.sections(rawsql.load_sql(__file__, "submit.sql"))
_SUBMIT = f"""{_PARTS["expected"]}{_PARTS["submission"]}{_PARTS["update"].rstrip()}, EXISTS (
  SELECT 1 FROM labeling_projectbudget b WHERE b.project_id = a.project_id)"""  # noqa: S608  made of constants
_RECORD_AND_SUBMIT = f"""{_PARTS["expected"]}{queue.CHANGES_SQL.rstrip()},
{_PARTS["submission"].rstrip()},
new_event AS ({audit_log.INSERT_EVENT_FOR} mine),
paid AS ({budgets.ADD_PAY_SQL} AND EXISTS (SELECT FROM mine)),
opened AS ({queue.OPEN_HELD_SQL.replace("RETURNING", "AND EXISTS (SELECT FROM mine) RETURNING")})
{_PARTS["update"].rstrip()}, (SELECT version FROM opened)"""  # noqa: S608  as above
_SKIP_PREFIX = "skipped: "  # marks the skipped ones among all released assignments
_EVENT_OF_ENDING = {FinishReason.GIVE_UP: "trace.given_up", FinishReason.BAD_PROBLEM: "problem.reported"}


class SubmitPromise(msgspec.Struct, frozen=True, kw_only=True):
    """What a page showed when its rater submitted: the version, the ending that the button named, and the ratings."""

    seen: int  # the page shows all edits up to this version
    code: str = ""
    number: int | None = None
    ratings: list[tuple[int, int, int]] | None = None  # step, option and rating; None if the client does not tell


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
    promise: SubmitPromise | None = None,
    opens: int | None = None,
) -> Submission:
    """Record the remaining edits and submit the assignment.

    - The first submit makes revision 1. A second submit without a correction in between returns the same submission;
      new edits in the message are stored as late and not applied.
    - After a correction was begun, the next submit makes the next revision. `revision` is the one that the client
      means: a delayed message for an earlier revision returns that submission and does not end the correction.
    - An assignment that was released or has lapsed can still be submitted. It counts as scheduled if a slot is free,
      otherwise as extra.

    `ending` replaces the protocol: give up, or report the problem. `active_ms` is the time since the last edit.
    `promise` is what the rater confirmed; None confirms whatever is stored. `opens` is a held assignment of the rater;
    the usual submit opens it as well, and says so in `opened_version` of the submission.

    Raises SubmissionIncomplete, ConflictingEdits, UnseenRatings or AlreadySubmitted; the edits are recorded, nothing is
    submitted. It commits, so do not call it inside a transaction that an error would roll back.
    """
    batch = validate_batch(assignment_id, rater_id, client, writes)
    options = _SubmitOptions(
        ending, validate_reason(reason), revision, by, max(0, active_ms), client, promise, opens, rater_id
    )
    return _submit_unlocked(batch, options, now) or _submit_locked(batch, options, now)


give_up = partial(submit, ending=FinishReason.GIVE_UP)
report_problem = partial(submit, ending=FinishReason.BAD_PROBLEM)


class _SubmitOptions(NamedTuple):
    ending: FinishReason | None  # None: by the protocol
    note: str
    revision: int | None
    by: User | None
    active_ms: int
    client: str
    promise: SubmitPromise | None
    opens: int | None
    rater: int


def _submit_unlocked(batch: EditBatch, options: _SubmitOptions, now: dt.datetime) -> Submission | None:
    """Read without locks, then write only if the assignment has not changed. Return None, and write nothing, if it has,
    or in any but the usual case."""
    sheet = answer_sheet.load_answer_sheet(batch, steps=None)
    merged = merge.merge_batch(sheet, batch, now=now)
    if not _is_usual_case(sheet.facts, options) or _find_fault(sheet, merged, options):
        return None
    after = _merged_sheet(sheet, merged)
    event = _plain_event(after, options, now)
    if event is not None:
        return _submit_at_once(sheet, merged, after, event, options, now)
    with transaction.atomic():
        if merged.new_edits and edits.save_merge(sheet=sheet, merged=merged, client=batch.client, now=now) is None:
            return None
        return _make_submission(after, options, now)


def _is_usual_case(facts: AssignmentFacts, options: _SubmitOptions) -> bool:
    """Return whether a current member has the active trace open, and the message is for the current revision."""
    is_being_rated = facts.state == AssignmentState.OPENED or facts.is_reopened
    return is_being_rated and not (facts.is_removed or facts.is_withdrawn or _is_outdated(facts, options))


def _plain_event(after: AnswerSheet, options: _SubmitOptions, now: dt.datetime) -> dict[str, Any] | None:
    """Return the event of the usual submit, which one statement makes. Return None if more must be deleted, compared,
    answered or scored than that statement does."""
    facts = after.facts
    if facts.purpose not in (AssignmentPurpose.WORK, AssignmentPurpose.GOLD) or facts.is_reopened or facts.is_assisted:
        return None
    if after.answers or _find_reviews_after_end(after):
        return None
    return audit_log.plain_event(_describe_event(facts, _find_ending(after, options), None), by=options.by, now=now)


def _submit_at_once(
    sheet: AnswerSheet,
    merged: MergeResult,
    after: AnswerSheet,
    event: dict[str, Any],
    options: _SubmitOptions,
    now: dt.datetime,
) -> Submission | None:
    """Record and submit in one statement. Return None, and write nothing, if the assignment has changed since it was
    read."""
    merged = merged._replace(reviews={**merged.reviews, **_finalize_step_reviews(after)})
    columns, parameters = _describe_submission(after, _find_ending(after, options), options, None, now, None)
    parameters |= {
        **event,
        "version": sheet.facts.version,
        "edited_version": after.facts.version,
        "client": options.client,
        **queue.encode_changes(**edits.list_changes(sheet, merged)),
        "ms": columns["total_ms"],
        "held": options.opens,
        "rater": options.rater,
    }
    rows = rawsql.fetch_rows(_RECORD_AND_SUBMIT, parameters)
    if not rows:
        return None
    wakeups.request_task(settlements.REFRESH_TASK)
    submission = _as_stored(rows[0][0], after.facts, columns, now)
    submission.opened_version = rows[0][1]
    return submission


def _submit_locked(batch: EditBatch, options: _SubmitOptions, now: dt.datetime) -> Submission:
    with transaction.atomic():
        edits.lock_assignment(assignment_id=batch.assignment_id, rater_id=batch.rater_id, and_trace=True)
        sheet = answer_sheet.load_answer_sheet(batch, steps=None)
        merged = merge.merge_batch(sheet, batch, now=now)
        edits.save_merge(sheet=sheet, merged=merged, client=batch.client, now=now)
        edits.log_unexpected_edits(sheet=sheet, merged=merged, now=now)
        if sheet.is_closed or _is_outdated(sheet.facts, options):
            earlier = Submission.objects.get(
                assignment_id=sheet.facts.assignment, revision=sheet.facts.submitted_revision
            )
            if _is_repeat(sheet, merged, options, earlier):
                return earlier
            fault: AssignmentError | None = AlreadySubmitted()
        else:
            fault = _find_fault(sheet, merged, options)
        if fault is None:
            submission = _make_submission(_merged_sheet(sheet, merged), options, now)
            if submission is None:
                raise RuntimeError(f"assignment {batch.assignment_id} changed while it was locked")
            return submission
    raise fault


def _is_outdated(facts: AssignmentFacts, options: _SubmitOptions) -> bool:
    return options.revision is not None and options.revision <= facts.submitted_revision


def _find_fault(sheet: AnswerSheet, merged: MergeResult, options: _SubmitOptions) -> AssignmentError | None:
    """Return why the assignment cannot be submitted yet."""
    if merged.lost:
        return ConflictingEdits(merged.lost, numbers=sheet.number_steps())
    after = _merged_sheet(sheet, merged)
    protocol, steps = sheet.facts.protocol, after.protocol_steps()
    state = protocols.submit_state(
        protocol,
        steps,
        requires_kind=sheet.facts.requires_kind,
        clause_rule=sheet.facts.clause_rule,
        unanswered=after.count_unanswered(),
    )
    if not (options.ending or state.is_ready):
        return SubmissionIncomplete(state)
    promise = options.promise
    if promise is None:
        return None
    is_kept = (state.code, state.number) == (promise.code, promise.number) and (
        promise.ratings is None or sorted(promise.ratings) == protocols.list_ratings(protocol, steps)
    )
    return None if is_kept and _saw_all(sheet, options) else UnseenRatings()


def _saw_all(sheet: AnswerSheet, options: _SubmitOptions) -> bool:
    """Return whether the page that submits shows every edit of other clients."""
    seen = options.promise.seen if options.promise else sheet.facts.version
    return not any(edit.version > seen and edit.was_applied and edit.client != options.client for edit in sheet.history)


def _is_repeat(sheet: AnswerSheet, merged: MergeResult, options: _SubmitOptions, earlier: Submission) -> bool:
    """Return whether a submit of a submitted trace confirms exactly that submission, as a repeated message does."""
    if options.promise is None:
        return True
    ending = options.ending or protocols.finish_reason_of(options.promise.code)
    return not merged.new_edits and ending == earlier.finish_reason and _saw_all(sheet, options)


def _merged_sheet(sheet: AnswerSheet, merged: MergeResult) -> AnswerSheet:
    """Return the answer sheet as it is after `edits.save_merge`."""
    facts = sheet.facts
    if merged.new_edits or facts.state == AssignmentState.HELD:
        state = AssignmentState.OPENED if facts.state == AssignmentState.HELD else facts.state
        facts = facts._replace(version=facts.version + 1, state=state)
    return sheet._replace(facts=facts).with_changes(merged.reviews, merged.judgments, merged.answers)


def _make_submission(sheet: AnswerSheet, options: _SubmitOptions, now: dt.datetime) -> Submission | None:
    """Return None, and write nothing, if the assignment has changed since it was read."""
    facts = sheet.facts
    ending = _find_ending(sheet, options)
    is_late = facts.state not in (*OPEN_STATES, AssignmentState.SUBMITTED)
    late_population = _late_population(facts, now) if is_late else None
    may_have_changed = facts.is_assisted and facts.revision == 1
    first = revealed_labels.find_first_answers(sheet, ending) if may_have_changed else None
    columns, parameters = _describe_submission(sheet, ending, options, late_population, now, first)
    rows = rawsql.fetch_rows(_SUBMIT, {**parameters, "edited_version": facts.version})
    if not rows:
        return None
    (pk, has_budget) = rows[0]
    submission = _as_stored(pk, facts, columns, now)
    total_ms = submission.total_ms or 0
    _save_final_reviews(sheet)
    _delete_empty_answers(sheet)
    if first is not None:
        submission = revealed_labels.keep_first_answers(
            sheet=sheet, submission=submission, first=first, ending=ending, now=now
        )
    audit_log.log_event(**_describe_event(facts, ending, late_population)._asdict(), by=options.by, now=now)
    _apply_consequences(facts, options.by, now)
    if facts.is_reopened:
        assignment = Assignment.objects.get(pk=facts.assignment)
        corrections.answer_request(assignment=assignment, was_corrected=True, by=options.by, now=now)
    if has_budget:
        budgets.add_pay(project_id=facts.project, total_ms=total_ms)
    return submission


def _late_population(facts: AssignmentFacts, now: dt.datetime) -> Population:
    """Return the population of a submission whose assignment had ended. It takes a slot again if one is free. Otherwise
    it is extra, and so are submissions of withdrawn traces and of removed raters."""
    if facts.is_removed or facts.is_withdrawn:
        return Population.EXTRA
    return queue.take_late_slot(assignment_id=facts.assignment, now=now) or Population.EXTRA


def _find_ending(sheet: AnswerSheet, options: _SubmitOptions) -> FinishReason:
    return options.ending or protocols.derive_finish_reason(sheet.facts.protocol, sheet.protocol_steps())


def _describe_event(facts: AssignmentFacts, ending: FinishReason, counts_as: Population | None) -> audit_log.EventEntry:
    """Return the event of a submission. `counts_as` is the population of a late one."""
    detail = {
        "revision": facts.revision,
        "finish_reason": ending.value,
        "was_late": counts_as is not None,
        "counts_as": counts_as,
    }
    what = _EVENT_OF_ENDING.get(ending, "submission.made")
    return audit_log.EventEntry(what, facts.project, f"assignment:{facts.assignment}", detail)


def _describe_submission(
    sheet: AnswerSheet,
    ending: FinishReason,
    options: _SubmitOptions,
    late_population: Population | None,
    now: dt.datetime,
    first: FirstAnswers | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of the submission, and the parameters of submit.sql."""
    facts = sheet.facts
    times = [review.active_ms for review in sheet.reviews.values()]
    times += [answer.active_ms for answer in sheet.answers.values()]
    active_ms = sum(ms or 0 for ms in times) + options.active_ms
    first_reason = ending.value if first is None else first.finish_reason
    columns: dict[str, Any] = {
        "revision": facts.revision,
        "finish_reason": first_reason,
        "finish_note": options.note,
        "protocol": facts.protocol,
        "total_ms": min(facts.max_active_ms(now), active_ms),
        "is_quality_control": facts.purpose == AssignmentPurpose.GOLD,
        "is_screening": facts.purpose == AssignmentPurpose.SCREENING,
    }
    # Gold is scored with the work, and not now: the time of the response would reveal which trace is gold.
    is_due = facts.purpose in (AssignmentPurpose.WORK, AssignmentPurpose.GOLD)
    parameters = {
        **facts._asdict(),
        **columns,
        "finish_reason": ending.value,
        "first_reason": first_reason,
        "population": late_population,
        # A late submission holds its slot again, if one was free.
        "holds_slot": None if late_population is None else late_population != Population.EXTRA,
        "is_due": is_due,
        "now": now,
    }
    return columns, parameters


def _as_stored(pk: int, facts: AssignmentFacts, columns: dict[str, Any], now: dt.datetime) -> Submission:
    submission = Submission(
        pk=pk, project_id=facts.project, assignment_id=facts.assignment, submitted_at=now, **columns
    )
    submission._state.adding = False
    return submission


def _save_final_reviews(sheet: AnswerSheet) -> None:
    """Write the final step reviews, and delete those after the first error."""
    if _find_reviews_after_end(sheet):
        _delete_after_first_error(sheet, _find_end(sheet))
    for position, final in _finalize_step_reviews(sheet).items():
        row: dict[str, object] = {"assignment": sheet.facts.assignment, "revision": sheet.facts.revision}
        row |= {"step": sheet.steps[position].id, "shown": final.shown, "chosen": final.chosen}
        row |= {"written_text": final.written_text}
        rawsql.fetch_rows(_UPDATE_STEP_REVIEW, row)


_UPDATE_STEP_REVIEW = """
UPDATE labeling_stepreview SET shown = %(shown)s, chosen = %(chosen)s, written_text = %(written_text)s
WHERE assignment_id = %(assignment)s AND revision = %(revision)s AND step_id = %(step)s"""


def _find_end(sheet: AnswerSheet) -> int | None:
    return protocols.find_end(sheet.facts.protocol, sheet.protocol_steps())


def _find_reviews_after_end(sheet: AnswerSheet) -> list[int]:
    """Return the reviewed positions after the first error, which a submission leaves out."""
    end = _find_end(sheet)
    return [position for position in sheet.reviews if end is not None and position > end]


def _finalize_step_reviews(sheet: AnswerSheet) -> dict[int, StepReviewRow]:
    """Return the step reviews that a submission changes. Each names the options that were shown and the one chosen,
    and corrections of steps that are not negative are left out."""
    end = _find_end(sheet)
    finals = {
        position: _finalize_step_review(sheet, position, end)
        for position in sheet.reviews
        if end is None or position <= end
    }
    return {position: final for position, final in finals.items() if final != sheet.reviews[position]}


def _finalize_step_review(sheet: AnswerSheet, position: int, end: int | None) -> StepReviewRow:
    """A pregenerated path continues with the trace's own option at every step except the first error. The text of a
    corrected step is a draft, which the page does not show, unless the step is negative."""
    review, step = sheet.reviews[position], sheet.steps[position]
    if not (sheet.is_pregenerated and step.is_rateable and step.options):
        return review
    has_alternatives = any((position, option) in sheet.judgments for option in range(1, len(step.options)))
    own_only = position != end and not has_alternatives and review.shown in (None, "0")
    shown = "0" if own_only else " ".join(str(option) for option in range(len(step.options)))
    is_negative = sheet.judgments.get((position, 0), JudgmentRow()).rating == protocols.NEGATIVE
    written = review.written_text if is_negative else None
    return review._replace(shown=shown, chosen=None if position == end else 0, written_text=written)


def _delete_after_first_error(sheet: AnswerSheet, end: int | None) -> None:
    after = StepReview.objects.filter(
        assignment_id=sheet.facts.assignment, revision=sheet.facts.revision, step__position__gt=end
    )
    Judgment.objects.filter(turn__in=after).delete()
    after.delete()


def _delete_empty_answers(sheet: AnswerSheet) -> None:
    """Delete answers that say nothing: they were taken back, or the project no longer asks the question that way."""
    if not sheet.answers:
        return
    questions = {question.code: question for question in sheet.load_questions()}
    empty = [
        code
        for code, answer in sheet.answers.items()
        if code not in questions or not trace_questions.is_answered(questions[code], answer.value)
    ]
    if empty:
        answers = TraceAnswer.objects.filter(assignment=sheet.facts.assignment, revision=sheet.facts.revision)
        answers.filter(question__in=empty).delete()


def _apply_consequences(facts: AssignmentFacts, by: User | None, now: dt.datetime) -> None:
    """Score training and screening, and advance the onboarding. Work and hidden gold wait for the background: see
    `labeling.quality.new_submissions`."""
    if facts.purpose in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
        gold_monitor.record_gold_answer(assignment_id=facts.assignment, now=now)
        onboarding.handle_submission(assignment_id=facts.assignment, by=by, now=now)
    else:
        wakeups.request_task(settlements.REFRESH_TASK)


def skip_trace(
    *,
    assignment_id: int,
    rater_id: int,
    client: str = "",
    writes: Sequence[IncomingEdit] = (),
    reason: str,
    now: dt.datetime,
    by: User | None,
) -> None:
    """Record the remaining edits and return the trace to the queue, up to the daily limit of the project.

    A trace that is in the queue again needs no skip: repeating the call changes nothing. Raises an AssignmentError. If
    the skip is refused, the edits are recorded all the same: the rater continues with them.
    """
    ended_reason = _SKIP_PREFIX + validate_reason(reason)
    if writes:
        edits.record_edits(assignment_id=assignment_id, rater_id=rater_id, client=client, writes=writes, now=now)
    with transaction.atomic():
        # Locks the rater, so that concurrent skips count one after the other.
        rater = Rater.objects.select_for_update(no_key=True).filter(pk=rater_id).first()
        assignment = Assignment.objects.select_related("project").filter(pk=assignment_id, rater_id=rater_id).first()
        if rater is None or assignment is None:
            raise AssignmentUnknown
        if assignment.state in (AssignmentState.RELEASED, AssignmentState.LAPSED):
            return
        if assignment.state not in OPEN_STATES:
            raise AssignmentNotOpen
        if assignment.purpose in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
            raise SkipNotAllowed
        _check_skip_limit(assignment, now)
        if not queue.release_assignment(assignment_id=assignment_id, now=now, reason=ended_reason, by=by):
            raise AssignmentNotOpen
        edits.log_assignment_event("assignment.skipped", assignment_id, assignment.project_id, by, now, reason=reason)


def _check_skip_limit(assignment: Assignment, now: dt.datetime) -> None:
    if not count_skips_left(rater_id=assignment.rater_id, project=assignment.project, now=now):
        raise SkipLimitReached(assignment.project.skip_limit_per_day)


def count_skips_left(*, rater_id: int, project: Project, now: dt.datetime) -> int:
    """Return how many more traces the rater can skip before midnight (UTC)."""
    midnight = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    released = Assignment.objects.filter(rater_id=rater_id, state=AssignmentState.RELEASED, ended_at__gte=midnight)
    skipped = released.filter(ended_reason__startswith=_SKIP_PREFIX).count()
    return max(0, project.skip_limit_per_day - skipped)
