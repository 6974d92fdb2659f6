"""Corrections: reopen a submission, cancel the correction, request one from a rater, and answer the request.

The submitted revision counts and never changes. A correction works on a copy, the next revision, until it is submitted
or canceled.
"""

import datetime as dt
from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

import rawsql
from accounts.models import User
from labeling.assignments import edits
from labeling.assignments.answer_sheet import IncomingEdit
from labeling.assignments.errors import CorrectionRefused, UnseenRatings
from labeling.models import Assignment, CorrectionRequest, Judgment, RatingEdit, StepReview, TraceAnswer
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, AssignmentState
from labeling.models.project import ProjectState

_REQUESTABLE_PURPOSES = (AssignmentPurpose.WORK, AssignmentPurpose.ADJUDICATION)


def reopen_submission(*, assignment_id: int, rater_id: int, now: dt.datetime, by: User | None) -> Assignment:
    """Begin a correction, or return the one that is open. Raises CorrectionRefused."""
    with transaction.atomic():
        assignment = edits.lock_assignment(assignment_id=assignment_id, rater_id=rater_id)
        if assignment.reopened_at is not None:
            return assignment
        is_asked = bool(find_open_requests(assignments=[assignment]))
        if refusal := reopen_refusal_reason(assignment=assignment, now=now, is_asked=is_asked):
            raise refusal
        assignment.revision = assignment.submitted_revision + 1
        copy_revision(assignment_id=assignment.pk, submitted=assignment.submitted_revision, new=assignment.revision)
        _save_revision(assignment, reopened_at=now)
        _log(assignment, "assignment.reopened", by, now, revision=assignment.revision)
    return assignment


def copy_revision(*, assignment_id: int, submitted: int, new: int) -> None:
    """Copy the step reviews, judgments and answers of a submitted revision to the next one."""
    copy = {"assignment": assignment_id, "new": new, "submitted": submitted}
    rawsql.fetch_rows(_COPY_STEP_REVIEWS, copy)
    rawsql.fetch_rows(_COPY_JUDGMENTS, copy)
    rawsql.fetch_rows(_COPY_ANSWERS, copy)


def discard_correction(
    *,
    assignment_id: int,
    rater_id: int,
    client: str = "",
    writes: Sequence[IncomingEdit] = (),
    seen: int | None = None,
    now: dt.datetime,
    by: User | None,
) -> Assignment:
    """Cancel a correction, so that the last submission remains as it is. Repeating the call changes nothing.

    The history keeps all edits, also those that came with this message. `seen` is the version that the page shows:
    raises UnseenRatings if another client has changed the correction since.
    """
    if writes:
        edits.record_edits(assignment_id=assignment_id, rater_id=rater_id, client=client, writes=writes, now=now)
    with transaction.atomic():
        assignment = edits.lock_assignment(assignment_id=assignment_id, rater_id=rater_id)
        if assignment.reopened_at is None:
            return assignment
        unseen = RatingEdit.objects.filter(assignment=assignment, revision=assignment.revision, was_applied=True)
        if seen is not None and unseen.filter(version__gt=seen).exclude(client=client).exists():
            raise UnseenRatings
        drafts = StepReview.objects.filter(assignment=assignment, revision=assignment.revision)
        Judgment.objects.filter(turn__in=drafts).delete()
        drafts.delete()
        TraceAnswer.objects.filter(assignment=assignment, revision=assignment.revision).delete()
        _log(assignment, "correction.discarded", by, now, revision=assignment.revision)
        assignment.revision = assignment.submitted_revision
        _save_revision(assignment, reopened_at=None)
    return assignment


def reopen_refusal_reason(*, assignment: Assignment, now: dt.datetime, is_asked: bool) -> CorrectionRefused | None:
    """Return why a submission cannot be corrected, or None if it can.

    The assignment comes with its project and rater. `is_asked` says whether a correction is requested.
    """
    project, submitted_at = assignment.project, assignment.submitted_at
    if assignment.state != AssignmentState.SUBMITTED or submitted_at is None:
        return CorrectionRefused("not_submitted", _("This trace is not submitted, so there is nothing to correct yet."))
    if assignment.origin == AssignmentOrigin.IMPORTED:
        return CorrectionRefused("imported", _("This submission was imported and cannot be corrected."))
    if assignment.purpose in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
        return CorrectionRefused("onboarding", _("Training and screening submissions cannot be corrected."))
    if assignment.rater.removed_at is not None:
        return CorrectionRefused("rater_removed", _("You are no longer a member of this project."))
    if project.state not in (ProjectState.OPEN, ProjectState.PAUSED):
        return CorrectionRefused("project_closed", _("The project is closed, so submissions cannot be corrected."))
    if now > submitted_at + dt.timedelta(days=project.correction_days) and not is_asked:
        message = _("This submission is too old to correct: submissions can be corrected for %(days)d days.")
        return CorrectionRefused("too_late", message % {"days": project.correction_days})
    return None


def request_correction(*, assignment_id: int, note: str, by: User, now: dt.datetime) -> CorrectionRequest:
    """Ask the rater of a submission to review it again. Raises CorrectionRefused."""
    assignment = Assignment.objects.select_related("rater").get(pk=assignment_id)
    _check_requestable(assignment, note)
    try:
        with transaction.atomic():
            request = CorrectionRequest.objects.create(
                assignment=assignment,
                revision=assignment.submitted_revision,
                note=note.strip(),
                asked_by=by,
                asked_at=now,
            )
            _log(assignment, "correction.asked", by, now, note=request.note)
    except IntegrityError:
        message = _("A correction was already requested. Wait for the annotator to respond.")
        raise CorrectionRefused("already_requested", message) from None
    return request


def _check_requestable(assignment: Assignment, note: str) -> None:
    if assignment.state != AssignmentState.SUBMITTED or assignment.origin == AssignmentOrigin.IMPORTED:
        message = _("Corrections can be requested only for traces that were submitted in Stepmark.")
        raise CorrectionRefused("not_submitted", message)
    if assignment.purpose not in _REQUESTABLE_PURPOSES:
        message = _("No correction can be requested: it would reveal that this trace is gold.")
        raise CorrectionRefused("gold", message)
    if assignment.rater.user_id is None or assignment.rater.removed_at is not None:
        raise CorrectionRefused("rater_removed", _("The annotator is no longer a member of this project."))
    if not note.strip():
        raise CorrectionRefused("no_note", _("Describe what the annotator should check."))


def open_correction_requests(*, user: User) -> QuerySet[CorrectionRequest]:
    """Return the unanswered correction requests to this person, the oldest first."""
    requests = CorrectionRequest.objects.filter(
        answered_at=None, assignment__rater__user=user, assignment__rater__removed_at=None
    )
    return requests.select_related("assignment__trace__problem", "assignment__project").order_by("asked_at", "pk")


def find_open_requests(*, assignments: Sequence[Assignment]) -> set[int]:
    """Return which of these assignments have an unanswered correction request."""
    rows = CorrectionRequest.objects.filter(assignment__in=assignments, answered_at=None)
    return set(rows.values_list("assignment", flat=True))


def decline_correction(*, assignment_id: int, rater_id: int, by: User | None, now: dt.datetime) -> bool:
    """Answer a correction request by leaving the submission unchanged. Return False if there is no request."""
    assignment = Assignment.objects.filter(pk=assignment_id, rater_id=rater_id).first()
    return assignment is not None and answer_request(assignment=assignment, was_corrected=False, by=by, now=now)


def answer_request(*, assignment: Assignment, was_corrected: bool, by: User | None, now: dt.datetime) -> bool:
    """Answer the open correction request of an assignment. Return False if there is none."""
    with transaction.atomic():
        requests = CorrectionRequest.objects.filter(assignment=assignment, answered_at=None)
        changed = requests.update(answered_at=now, was_corrected=was_corrected)
        if changed:
            _log(assignment, "correction.answered", by, now, was_corrected=was_corrected)
    return bool(changed)


def _save_revision(assignment: Assignment, *, reopened_at: dt.datetime | None) -> None:
    assignment.reopened_at = reopened_at
    assignment.version += 1
    assignment.save(update_fields=["revision", "reopened_at", "version"])


def _log(assignment: Assignment, what: str, by: User | None, now: dt.datetime, **detail: object) -> None:
    edits.log_assignment_event(what, assignment.pk, assignment.project_id, by, now, **detail)


_COPY_STEP_REVIEWS = """
INSERT INTO labeling_stepreview (assignment_id, revision, step_id, shown, chosen, written_text, written_rating,
  written_flagged, written_corrected_rating, comment, missing, active_ms)
SELECT assignment_id, %(new)s, step_id, shown, chosen, written_text, written_rating, written_flagged,
  written_corrected_rating, comment, missing, active_ms
FROM labeling_stepreview WHERE assignment_id = %(assignment)s AND revision = %(submitted)s"""

_COPY_JUDGMENTS = """
INSERT INTO labeling_judgment (turn_id, option_id, rating, flagged, category, reason, error_link, severity, evidence,
  citations, value, rollouts, successes)
SELECT copy.id, j.option_id, j.rating, j.flagged, j.category, j.reason, j.error_link, j.severity, j.evidence,
  j.citations, j.value, j.rollouts, j.successes
FROM labeling_stepreview first
JOIN labeling_judgment j ON j.turn_id = first.id
JOIN labeling_stepreview copy ON copy.assignment_id = first.assignment_id AND copy.step_id = first.step_id
  AND copy.revision = %(new)s
WHERE first.assignment_id = %(assignment)s AND first.revision = %(submitted)s"""

_COPY_ANSWERS = """
INSERT INTO labeling_traceanswer (assignment_id, revision, question, value, active_ms)
SELECT assignment_id, %(new)s, question, value, active_ms
FROM labeling_traceanswer WHERE assignment_id = %(assignment)s AND revision = %(submitted)s"""
