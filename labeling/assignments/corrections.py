"""Opens what was submitted once more. The submitted revision stays what counts, and its rows never change: the
correction is a copy, until it is submitted itself or thrown away."""

import datetime as dt
from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

import rawsql
from accounts.models import User
from events import audit_log
from labeling.assignments import edits, event_log
from labeling.assignments.edit_batch import IncomingEdit
from labeling.assignments.errors import AssignmentUnknown, CorrectionRefused
from labeling.models import Assignment, CorrectionRequest, Judgment, StepReview
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, AssignmentState
from labeling.models.project import ProjectState

# Asks raters to look at a submission again, and takes their answers. Alone changes requests for correction.


_CORRECTABLE_PURPOSES = (AssignmentPurpose.WORK, AssignmentPurpose.ADJUDICATION)


def request_correction(*, assignment_id: int, note: str, by: User, now: dt.datetime) -> CorrectionRequest:
    """Ask the rater of a submission to look again. Raises CannotReopen where that is not possible."""
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
            _log_request("correction.asked", assignment, by, now, note=request.note)
    except IntegrityError:
        raise CorrectionRefused(
            _("Somebody has asked for a correction already. It is waiting for its rater.")
        ) from None
    return request


def open_correction_requests(*, user: User) -> QuerySet[CorrectionRequest]:
    """What this person is asked to look at again, the oldest first."""
    mine = CorrectionRequest.objects.filter(
        answered_at=None, assignment__rater__user=user, assignment__rater__removed_at=None
    )
    return mine.select_related("assignment__trace__problem", "assignment__project").order_by("asked_at", "pk")


def has_open_request(*, assignment_id: int) -> bool:
    return CorrectionRequest.objects.filter(assignment_id=assignment_id, answered_at=None).exists()


def find_open_requests(*, assignments: Sequence[Assignment]) -> set[int]:
    """Of which of these somebody asks for a correction."""
    rows = CorrectionRequest.objects.filter(assignment__in=assignments, answered_at=None)
    return set(rows.values_list("assignment", flat=True))


def decline_correction(*, assignment_id: int, rater_id: int, by: User | None, now: dt.datetime) -> bool:
    """The rater has looked again, and it stands. False where nobody asks."""
    assignment = Assignment.objects.filter(pk=assignment_id, rater_id=rater_id).first()
    return assignment is not None and _close_request(assignment, by, now, was_corrected=False)


def close_request_as_corrected(*, assignment_id: int, by: User | None, now: dt.datetime) -> bool:
    """A correction was submitted: whoever asked for one has it. Inside the transaction of its submit."""
    return _close_request(Assignment.objects.get(pk=assignment_id), by, now, was_corrected=True)


def _close_request(assignment: Assignment, by: User | None, now: dt.datetime, *, was_corrected: bool) -> bool:
    with transaction.atomic():
        waiting = CorrectionRequest.objects.filter(assignment=assignment, answered_at=None)
        changed = waiting.update(answered_at=now, was_corrected=was_corrected)
        if changed:
            _log_request("correction.answered", assignment, by, now, was_corrected=was_corrected)
    return bool(changed)


def _check_requestable(assignment: Assignment, note: str) -> None:
    if assignment.state != AssignmentState.SUBMITTED or assignment.origin == AssignmentOrigin.IMPORTED:
        raise CorrectionRefused(_("A correction can be asked for what was submitted here, and for nothing else."))
    if assignment.purpose not in _CORRECTABLE_PURPOSES:
        raise CorrectionRefused(_("This trace has a known answer: asking for a correction would give it away."))
    if assignment.rater.user_id is None or assignment.rater.removed_at is not None:
        raise CorrectionRefused(_("Its rater is no longer here."))
    if not note.strip():
        raise CorrectionRefused(_("Say what the rater should look at."))


def _log_request(what: str, assignment: Assignment, by: User | None, now: dt.datetime, **detail: object) -> None:
    subject = event_log.assignment_subject(assignment.pk)
    audit_log.log_event(what=what, by=by, now=now, project=assignment.project_id, subject=subject, detail=detail)


def reopen_submission(*, assignment_id: int, rater_id: int, now: dt.datetime, by: User | None) -> Assignment:
    """Begin a correction; one that was begun goes on. Raises CannotReopen."""
    with transaction.atomic():
        assignment = _lock_assignment(assignment_id, rater_id)
        if assignment.reopened_at is not None:
            return assignment
        if why_not := reopen_refusal_reason(assignment=assignment, now=now):
            raise CorrectionRefused(why_not)
        assignment.revision = assignment.submitted_revision + 1
        _copy_revision(assignment)
        _save_revision(assignment, reopened_at=now)
        _log_correction("assignment.reopened", assignment, by, now)
    return assignment


def discard_correction(
    *,
    assignment_id: int,
    rater_id: int,
    client: str = "",
    writes: Sequence[IncomingEdit] = (),
    now: dt.datetime,
    by: User | None,
) -> Assignment:
    """Cancel a correction: the last submission remains as it is. The history keeps all edits, also those that came with
    this message. Repeating the call changes nothing."""
    if writes:
        edits.record_edits(assignment_id=assignment_id, rater_id=rater_id, client=client, writes=writes, now=now)
    with transaction.atomic():
        assignment = _lock_assignment(assignment_id, rater_id)
        if assignment.reopened_at is None:
            return assignment
        drafts = StepReview.objects.filter(assignment=assignment, revision=assignment.revision)
        Judgment.objects.filter(turn__in=drafts).delete()
        drafts.delete()
        _log_correction("correction.discarded", assignment, by, now)
        assignment.revision = assignment.submitted_revision
        _save_revision(assignment, reopened_at=None)
    return assignment


def _lock_assignment(assignment_id: int, rater_id: int) -> Assignment:
    rows = Assignment.objects.select_related("project", "rater").filter(pk=assignment_id, rater_id=rater_id)
    assignment = rows.select_for_update(no_key=True, of=("self",)).first()
    if assignment is None:
        raise AssignmentUnknown
    return assignment


def reopen_refusal_reason(*, assignment: Assignment, now: dt.datetime, is_asked: bool | None = None) -> str:
    """Why a submission cannot be corrected, for people to read; nothing where it can. The project and the rater are at
    hand, and `is_asked`, where it is known already whether somebody asks for this one."""
    project, submitted_at = assignment.project, assignment.submitted_at
    if assignment.state != AssignmentState.SUBMITTED or submitted_at is None:
        return _("This trace is not submitted: there is nothing to correct.")
    if assignment.origin == AssignmentOrigin.IMPORTED:
        return _("This submission came from a file and cannot be corrected here.")
    if assignment.purpose in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
        return _("What was submitted in training or screening stands: its result has been told.")
    if assignment.rater.removed_at is not None:
        return _("You no longer rate in this project: submissions stand as they are.")
    if project.state not in (ProjectState.OPEN, ProjectState.PAUSED):
        return _("The project is closed: submissions stand as they are.")
    if now > submitted_at + dt.timedelta(days=project.correction_days):
        asked = has_open_request(assignment_id=assignment.pk) if is_asked is None else is_asked
        late = _("Submissions can be corrected for %(days)d days; this one is older.")
        return "" if asked else late % {"days": project.correction_days}
    return ""


def _copy_revision(assignment: Assignment) -> None:
    revisions = {"assignment": assignment.pk, "new": assignment.revision, "submitted": assignment.submitted_revision}
    rawsql.fetch_rows(_COPY_STEP_REVIEWS, revisions)
    rawsql.fetch_rows(_COPY_JUDGMENTS, revisions)


def _save_revision(assignment: Assignment, *, reopened_at: dt.datetime | None) -> None:
    assignment.reopened_at = reopened_at
    assignment.version += 1
    assignment.save(update_fields=["revision", "reopened_at", "version"])


def _log_correction(what: str, assignment: Assignment, by: User | None, now: dt.datetime) -> None:
    detail = {"revision": assignment.revision}
    audit_log.log_event(
        what=what,
        by=by,
        now=now,
        project=assignment.project_id,
        subject=event_log.assignment_subject(assignment.pk),
        detail=detail,
    )


_COPY_STEP_REVIEWS = """
INSERT INTO labeling_stepreview (assignment_id, revision, step_id, shown, chosen, written_text, written_rating,
  written_flagged, written_corrected_rating, comment, active_ms)
SELECT assignment_id, %(new)s, step_id, shown, chosen, written_text, written_rating, written_flagged,
  written_corrected_rating, comment, active_ms
FROM labeling_stepreview WHERE assignment_id = %(assignment)s AND revision = %(submitted)s"""

_COPY_JUDGMENTS = """
INSERT INTO labeling_judgment (turn_id, option_id, rating, flagged, category, reason, value, rollouts, successes)
SELECT copy.id, j.option_id, j.rating, j.flagged, j.category, j.reason, j.value, j.rollouts, j.successes
FROM labeling_stepreview first
JOIN labeling_judgment j ON j.turn_id = first.id
JOIN labeling_stepreview copy ON copy.assignment_id = first.assignment_id AND copy.step_id = first.step_id
  AND copy.revision = %(new)s
WHERE first.assignment_id = %(assignment)s AND first.revision = %(submitted)s"""
