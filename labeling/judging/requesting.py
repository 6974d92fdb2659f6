"""Asks raters to look at a submission again, and takes their answers. Alone changes requests for correction.

A request opens nothing by itself: the rater reads the note and decides. It outlasts the days in which submissions can
be corrected. Agreement and gold read the first revision, whatever comes of it.
"""

import datetime as dt
from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import log
from labeling.judging import telling
from labeling.judging.errors import CannotReopen
from labeling.models import Assignment, CorrectionRequest
from labeling.models.assignment import AssignmentState, Origin, Purpose

_ASKABLE = (Purpose.WORK, Purpose.ADJUDICATION)


def ask_correction(*, assignment_id: int, note: str, by: User, now: dt.datetime) -> CorrectionRequest:
    """Ask the rater of a submission to look again. Raises CannotReopen where that is not possible."""
    assignment = Assignment.objects.select_related("rater").get(pk=assignment_id)
    _check(assignment, note)
    try:
        with transaction.atomic():
            request = CorrectionRequest.objects.create(
                assignment=assignment,
                revision=assignment.submitted_revision,
                note=note.strip(),
                asked_by=by,
                asked_at=now,
            )
            _say("correction.asked", assignment, by, now, note=request.note)
    except IntegrityError:
        raise CannotReopen(_("Somebody has asked for a correction already. It is waiting for its rater.")) from None
    return request


def open_requests(*, user: User) -> QuerySet[CorrectionRequest]:
    """What this person is asked to look at again, the oldest first."""
    mine = CorrectionRequest.objects.filter(
        answered_at=None, assignment__rater__user=user, assignment__rater__removed_at=None
    )
    return mine.select_related("assignment__trace__problem", "assignment__project").order_by("asked_at", "pk")


def is_asked(*, assignment_id: int) -> bool:
    return CorrectionRequest.objects.filter(assignment_id=assignment_id, answered_at=None).exists()


def asked_among(*, assignments: Sequence[Assignment]) -> set[int]:
    """Of which of these somebody asks for a correction."""
    rows = CorrectionRequest.objects.filter(assignment__in=assignments, answered_at=None)
    return set(rows.values_list("assignment", flat=True))


def leave_as_is(*, assignment_id: int, rater_id: int, by: User | None, now: dt.datetime) -> bool:
    """The rater has looked again, and it stands. False where nobody asks."""
    assignment = Assignment.objects.filter(pk=assignment_id, rater_id=rater_id).first()
    return assignment is not None and _answer(assignment, by, now, was_corrected=False)


def answered(*, assignment_id: int, by: User | None, now: dt.datetime) -> bool:
    """A correction was submitted: whoever asked for one has it. Inside the transaction of its submit."""
    return _answer(Assignment.objects.get(pk=assignment_id), by, now, was_corrected=True)


def _answer(assignment: Assignment, by: User | None, now: dt.datetime, *, was_corrected: bool) -> bool:
    with transaction.atomic():
        waiting = CorrectionRequest.objects.filter(assignment=assignment, answered_at=None)
        changed = waiting.update(answered_at=now, was_corrected=was_corrected)
        if changed:
            _say("correction.answered", assignment, by, now, was_corrected=was_corrected)
    return bool(changed)


def _check(assignment: Assignment, note: str) -> None:
    if assignment.state != AssignmentState.SUBMITTED or assignment.origin == Origin.IMPORTED:
        raise CannotReopen(_("A correction can be asked for what was submitted here, and for nothing else."))
    if assignment.purpose not in _ASKABLE:
        raise CannotReopen(_("This trace has a known answer: asking for a correction would give it away."))
    if assignment.rater.user_id is None or assignment.rater.removed_at is not None:
        raise CannotReopen(_("Its rater is no longer here."))
    if not note.strip():
        raise CannotReopen(_("Say what the rater should look at."))


def _say(what: str, assignment: Assignment, by: User | None, now: dt.datetime, **detail: object) -> None:
    subject = telling.subject(assignment.pk)
    log.append(what=what, by=by, now=now, project=assignment.project_id, subject=subject, detail=detail)
