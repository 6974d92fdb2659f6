"""Opens what was submitted once more. The submitted revision stays what counts, and its rows never change: the
correction is a copy, until it is submitted itself or thrown away."""

import datetime as dt

from django.db import transaction
from django.utils.translation import gettext as _

import statements
from accounts.models import User
from events import log
from labeling.judging import requesting, telling
from labeling.judging.errors import AssignmentUnknown, CannotReopen
from labeling.models import Assignment, Judgment, Turn
from labeling.models.assignment import AssignmentState, Origin, Purpose
from labeling.models.project import ProjectState


def reopen(*, assignment_id: int, rater_id: int, now: dt.datetime, by: User | None) -> Assignment:
    """Begin a correction; one that was begun goes on. Raises CannotReopen."""
    with transaction.atomic():
        assignment = _locked(assignment_id, rater_id)
        if assignment.reopened_at is not None:
            return assignment
        if why_not := why_not_reopen(assignment=assignment, now=now):
            raise CannotReopen(why_not)
        assignment.revision = assignment.submitted_revision + 1
        _copy(assignment)
        _move(assignment, reopened_at=now)
        _tell("assignment.reopened", assignment, by, now)
    return assignment


def discard_correction(*, assignment_id: int, rater_id: int, now: dt.datetime, by: User | None) -> Assignment:
    """Throw away what was corrected and not submitted. What was written stays in the history."""
    with transaction.atomic():
        assignment = _locked(assignment_id, rater_id)
        if assignment.reopened_at is None:
            return assignment
        drafts = Turn.objects.filter(assignment=assignment, revision=assignment.revision)
        Judgment.objects.filter(turn__in=drafts).delete()
        drafts.delete()
        _tell("correction.discarded", assignment, by, now)
        assignment.revision = assignment.submitted_revision
        _move(assignment, reopened_at=None)
    return assignment


def _locked(assignment_id: int, rater_id: int) -> Assignment:
    rows = Assignment.objects.select_related("project", "rater").filter(pk=assignment_id, rater_id=rater_id)
    assignment = rows.select_for_update(no_key=True, of=("self",)).first()
    if assignment is None:
        raise AssignmentUnknown
    return assignment


def why_not_reopen(*, assignment: Assignment, now: dt.datetime, is_asked: bool | None = None) -> str:
    """Why a submission cannot be corrected, for people to read; nothing where it can. The project and the rater are at
    hand, and `is_asked`, where it is known already whether somebody asks for this one."""
    project, submitted_at = assignment.project, assignment.submitted_at
    if assignment.state != AssignmentState.SUBMITTED or submitted_at is None:
        return _("This trace is not submitted: there is nothing to correct.")
    if assignment.origin == Origin.IMPORTED:
        return _("This submission came from a file and cannot be corrected here.")
    if assignment.purpose in (Purpose.TRAINING, Purpose.SCREENING):
        return _("What was submitted in training or screening stands: its result has been told.")
    if assignment.rater.removed_at is not None:
        return _("You no longer rate in this project: submissions stand as they are.")
    if project.state not in (ProjectState.OPEN, ProjectState.PAUSED):
        return _("The project is closed: submissions stand as they are.")
    if now > submitted_at + dt.timedelta(days=project.correction_days):
        asked = requesting.is_asked(assignment_id=assignment.pk) if is_asked is None else is_asked
        late = _("Submissions can be corrected for %(days)d days; this one is older.")
        return "" if asked else late % {"days": project.correction_days}
    return ""


def _copy(assignment: Assignment) -> None:
    revisions = {"assignment": assignment.pk, "new": assignment.revision, "submitted": assignment.submitted_revision}
    statements.rows(_COPY_TURNS, revisions)
    statements.rows(_COPY_JUDGMENTS, revisions)


def _move(assignment: Assignment, *, reopened_at: dt.datetime | None) -> None:
    assignment.reopened_at = reopened_at
    assignment.version += 1
    assignment.save(update_fields=["revision", "reopened_at", "version"])


def _tell(what: str, assignment: Assignment, by: User | None, now: dt.datetime) -> None:
    detail = {"revision": assignment.revision}
    log.append(
        what=what,
        by=by,
        now=now,
        project=assignment.project_id,
        subject=telling.subject(assignment.pk),
        detail=detail,
    )


_COPY_TURNS = """
INSERT INTO labeling_turn (assignment_id, revision, step_id, shown, chosen, written_text, written_rating,
  written_flagged, written_corrected_rating, comment, active_ms)
SELECT assignment_id, %(new)s, step_id, shown, chosen, written_text, written_rating, written_flagged,
  written_corrected_rating, comment, active_ms
FROM labeling_turn WHERE assignment_id = %(assignment)s AND revision = %(submitted)s"""

_COPY_JUDGMENTS = """
INSERT INTO labeling_judgment (turn_id, option_id, rating, flagged, category, reason, value, rollouts, successes)
SELECT copy.id, j.option_id, j.rating, j.flagged, j.category, j.reason, j.value, j.rollouts, j.successes
FROM labeling_turn first
JOIN labeling_judgment j ON j.turn_id = first.id
JOIN labeling_turn copy ON copy.assignment_id = first.assignment_id AND copy.step_id = first.step_id
  AND copy.revision = %(new)s
WHERE first.assignment_id = %(assignment)s AND first.revision = %(submitted)s"""
