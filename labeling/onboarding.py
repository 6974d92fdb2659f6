"""Onboarding: consent, guideline, training and screening, before a rater gets work.

- Each rater agrees to or reads each version of the consent text and the guideline once.
- Training: after each trace the rater reads feedback, before the next trace.
- Screening: a set of gold traces, a pass mark, and a number of attempts. As in PRM800K, a trace is right if its first
  error is in the accepted set.

Only this module changes consents, guideline acknowledgments, training feedback and screening results, and the
onboarding columns of a rater. `labeling.gates` computes the next gate.
"""

import datetime as dt

from django.db import transaction
from django.db.models import Model

from accounts.models import User
from labeling import gold_sets, queue, raters
from labeling.models import (
    Assignment,
    Consent,
    ConsentText,
    Guideline,
    GuidelineAcknowledgment,
    Project,
    Rater,
    ScreeningResult,
    TrainingFeedback,
)
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterStage
from labeling.quality.gold_monitor import load_gold_accuracy
from labeling.queue import Claim


class VersionSuperseded(Exception):
    """A newer version was published while this one was on screen."""


# Consent and guideline


def give_consent(*, rater: Rater, text: ConsentText, by: User, now: dt.datetime) -> None:
    """Record that the rater agrees to this version. Repeating it changes nothing. Raises VersionSuperseded."""
    with transaction.atomic():
        _check_current(rater, consent_text=text)
        _, is_new = Consent.objects.get_or_create(rater=rater, text=text, defaults={"given_at": now})
        rater.agreed_text = text
        rater.save(update_fields=["agreed_text"])
        if is_new:
            raters.log_rater_event("consent.given", rater, by, now, version=text.version)


def acknowledge_guideline(*, rater: Rater, guideline: Guideline, by: User, now: dt.datetime) -> None:
    """Record that the rater has read this version. Repeating it changes nothing. Raises VersionSuperseded."""
    with transaction.atomic():
        _check_current(rater, guideline=guideline)
        _, is_new = GuidelineAcknowledgment.objects.get_or_create(
            rater=rater, guideline=guideline, defaults={"read_at": now}
        )
        rater.read_guideline = guideline
        rater.save(update_fields=["read_guideline"])
        if is_new:
            raters.log_rater_event("guideline.read", rater, by, now, version=guideline.version)


def _check_current(rater: Rater, **version: Model) -> None:
    """Lock the project, so that no version is published in the meantime."""
    project = Project.objects.select_for_update(no_key=True).filter(pk=rater.project_id, **version)
    if not project.exists():
        raise VersionSuperseded


# Progress


def claim_trace(*, rater_id: int, by: User | None, now: dt.datetime, opened: bool = False) -> Claim:
    """Return the next trace at the rater's stage, and move the rater on if the stage has none left. Raises a
    QueueRefusal."""
    try:
        return queue.claim_trace(rater_id=rater_id, now=now, opened=opened)
    except queue.NothingLeft:
        if not _advance_rater(rater_id, by, now):
            raise
    return queue.claim_trace(rater_id=rater_id, now=now, opened=opened)


def _advance_rater(rater_id: int, by: User | None, now: dt.datetime) -> bool:
    """Move on a rater whose set has become smaller or was removed. Return whether the stage changed."""
    with transaction.atomic():
        rater = _lock_rater(rater_id)
        before = rater.stage
        if before == RaterStage.TRAINING:
            _finish_training(rater, by, now)
        elif before == RaterStage.SCREENING:
            _decide_screening(rater, by, now)
        return rater.stage != before


def handle_submission(*, assignment_id: int, by: User | None, now: dt.datetime) -> None:
    """Handle the submission of a scored training or screening trace, inside its transaction."""
    assignment = Assignment.objects.get(pk=assignment_id)
    rater = _lock_rater(assignment.rater_id)
    if assignment.purpose == AssignmentPurpose.TRAINING:
        TrainingFeedback.objects.get_or_create(assignment=assignment, defaults={"given_at": now})
        if rater.stage == RaterStage.TRAINING:
            _set_stage(rater, RaterStage.LESSON)
    elif rater.stage == RaterStage.SCREENING:
        _decide_screening(rater, by, now)


def admit_rater(*, rater_id: int, by: User | None, now: dt.datetime) -> None:
    """Let a rater work without training and screening, on behalf of a lead."""
    with transaction.atomic():
        rater = _lock_rater(rater_id)
        if rater.stage != RaterStage.WORKING:
            raters.log_rater_event("rater.admitted", rater, by, now, from_stage=rater.stage)
            _set_stage(rater, RaterStage.WORKING)


def _lock_rater(rater_id: int) -> Rater:
    """Lock the rater, so that concurrent submits are handled one after the other."""
    return Rater.objects.select_for_update(no_key=True, of=("self",)).select_related("project").get(pk=rater_id)


def _set_stage(rater: Rater, to: RaterStage) -> None:
    rater.stage = to
    rater.save(update_fields=["stage"])


# Training


def acknowledge_feedback(*, assignment_id: int, rater_id: int, by: User, now: dt.datetime) -> None:
    """Record that the rater has read the feedback. Repeating it changes nothing."""
    with transaction.atomic():
        rater = _lock_rater(rater_id)
        unread = TrainingFeedback.objects.filter(assignment__rater=rater, read_at=None)
        unread.filter(assignment=assignment_id).update(read_at=now)
        if rater.stage == RaterStage.LESSON and not unread.exists():
            _set_stage(rater, RaterStage.TRAINING)
            _finish_training(rater, by, now)


def _finish_training(rater: Rater, by: User | None, now: dt.datetime) -> None:
    if not gold_sets.is_set_complete(rater, AssignmentPurpose.TRAINING):
        return
    feedback = TrainingFeedback.objects.filter(assignment__rater=rater, assignment__attempt=rater.training_attempt)
    _set_stage(rater, _stage_after_training(rater.project_id))
    detail = {"n_traces": feedback.count(), "attempt": rater.training_attempt}
    raters.log_rater_event("training.finished", rater, by, now, **detail)


def require_retraining(*, rater_id: int, by: User, now: dt.datetime) -> None:
    """Send a rater through onboarding again: the guideline, then the training and screening sets that the project has,
    as new attempts. Ends a pause. Earlier labels stay."""
    with transaction.atomic():
        rater = _lock_rater(rater_id)
        raters.resume_rater(rater=rater, by=by, now=now)
        queue.release_held(rater_id=rater_id, now=now, reason="retraining required", by=by)
        rater.read_guideline = None
        rater.screening_attempt += gold_sets.is_set_begun(rater, AssignmentPurpose.SCREENING)
        rater.training_attempt += gold_sets.is_set_begun(rater, AssignmentPurpose.TRAINING)
        has_training = gold_sets.is_set_served(rater.project_id, SamplingSource.TRAINING)
        rater.stage = RaterStage.TRAINING if has_training else _stage_after_training(rater.project_id)
        rater.save(update_fields=["read_guideline", "screening_attempt", "training_attempt", "stage"])
        detail = {"training": rater.training_attempt, "screening": rater.screening_attempt, "stage": rater.stage}
        raters.log_rater_event("training.asked_again", rater, by, now, **detail)


def _stage_after_training(project_id: int) -> RaterStage:
    return RaterStage.SCREENING if gold_sets.is_set_served(project_id, SamplingSource.SCREENING) else RaterStage.WORKING


# Screening


def _decide_screening(rater: Rater, by: User | None, now: dt.datetime) -> None:
    """Decide on a completed attempt. The caller has locked the rater."""
    if not gold_sets.is_set_complete(rater, AssignmentPurpose.SCREENING):
        return
    attempt, project = rater.screening_attempt, rater.project
    accuracy = load_gold_accuracy(rater_id=rater.pk, use=GoldUse.SCREENING, attempt=attempt)
    if not accuracy.n:
        # The set was removed before the rater got a trace of it.
        _set_stage(rater, RaterStage.WORKING)
        return
    mark = gold_sets.pass_mark(accuracy.n, project.screening_pass_share)
    counts = {"attempt": attempt, "n_right": accuracy.right, "n_traces": accuracy.n, "n_needed": mark}
    has_passed = accuracy.right >= mark
    ScreeningResult.objects.create(rater=rater, has_passed=has_passed, decided_at=now, **counts)
    failed_to = RaterStage.RETRY if attempt < project.screening_attempts else RaterStage.FAILED
    _set_stage(rater, RaterStage.WORKING if has_passed else failed_to)
    raters.log_rater_event("screening.passed" if has_passed else "screening.not_passed", rater, by, now, **counts)


def begin_next_attempt(*, rater_id: int, by: User, now: dt.datetime) -> bool:
    """Begin the next attempt. Return False if none is available, also on a second click."""
    with transaction.atomic():
        rater = _lock_rater(rater_id)
        if rater.stage != RaterStage.RETRY:
            return False
        rater.screening_attempt += 1
        rater.stage = RaterStage.SCREENING
        rater.save(update_fields=["screening_attempt", "stage"])
        raters.log_rater_event("screening.begun_again", rater, by, now, attempt=rater.screening_attempt)
    return True


def allow_another_attempt(*, rater_id: int, by: User, now: dt.datetime) -> bool:
    """Give a rater who failed another attempt, on behalf of a lead. Return False if the rater has not failed."""
    with transaction.atomic():
        rater = _lock_rater(rater_id)
        if rater.stage != RaterStage.FAILED:
            return False
        _set_stage(rater, RaterStage.RETRY)
        raters.log_rater_event("screening.allowed_again", rater, by, now, after_attempt=rater.screening_attempt)
    return True
