"""Screening: a set of gold traces, a pass mark, and a number of attempts. As in PRM800K, a trace is right if its first
error is in the accepted set."""

import datetime as dt
import math

from django.db import transaction

from accounts.models import User
from labeling import raters
from labeling.models import Rater, ScreeningResult
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.rater import RaterStage
from labeling.onboarding import gold_sets
from labeling.quality.gold_scoring import load_gold_accuracy


def pass_mark(n_traces: int, share: float) -> int:
    """Return how many traces must be right. Rounds first, so that 0.7 of 10 is 7."""
    return math.ceil(round(share * n_traces, 9))


def decide_screening(*, rater: Rater, by: User | None, now: dt.datetime) -> None:
    """Decide on a completed attempt. The caller has locked the rater, loaded with its project."""
    if not gold_sets.is_set_complete(rater, AssignmentPurpose.SCREENING):
        return
    accuracy = load_gold_accuracy(rater_id=rater.pk, use=GoldUse.SCREENING, attempt=rater.screening_attempt)
    if not accuracy.n:
        # The set was removed before the rater got a trace of it.
        raters.set_stage(rater=rater, to=RaterStage.WORKING, now=now)
        return
    _record_result(rater, accuracy.right, accuracy.n, by, now)


def _record_result(rater: Rater, n_right: int, n_traces: int, by: User | None, now: dt.datetime) -> None:
    project, mark = rater.project, pass_mark(n_traces, rater.project.screening_pass_share)
    has_passed = n_right >= mark
    ScreeningResult.objects.create(
        rater=rater,
        attempt=rater.screening_attempt,
        n_traces=n_traces,
        n_right=n_right,
        n_needed=mark,
        has_passed=has_passed,
        decided_at=now,
    )
    failed_to = RaterStage.RETRY if rater.screening_attempt < project.screening_attempts else RaterStage.FAILED
    raters.set_stage(rater=rater, to=RaterStage.WORKING if has_passed else failed_to, now=now)
    detail = {"attempt": rater.screening_attempt, "n_right": n_right, "n_traces": n_traces, "n_needed": mark}
    raters.log_rater_event("screening.passed" if has_passed else "screening.not_passed", rater, by, now, **detail)


def begin_next_attempt(*, rater_id: int, by: User, now: dt.datetime) -> bool:
    """Begin the next attempt. Return False if none is available, also on a second click."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        if rater.stage != RaterStage.RETRY:
            return False
        rater.screening_attempt += 1
        rater.save(update_fields=["screening_attempt"])
        raters.set_stage(rater=rater, to=RaterStage.SCREENING, now=now)
        raters.log_rater_event("screening.begun_again", rater, by, now, attempt=rater.screening_attempt)
    return True


def allow_another_attempt(*, rater_id: int, by: User, now: dt.datetime) -> bool:
    """Give a rater who failed another attempt, on behalf of a lead. Return False if the rater has not failed."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        if rater.stage != RaterStage.FAILED:
            return False
        raters.set_stage(rater=rater, to=RaterStage.RETRY, now=now)
        raters.log_rater_event("screening.allowed_again", rater, by, now, after_attempt=rater.screening_attempt)
    return True


def admit_rater(*, rater_id: int, by: User | None, now: dt.datetime) -> None:
    """Let a rater work without training and screening, on behalf of a lead."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        if rater.stage == RaterStage.WORKING:
            return
        raters.log_rater_event("rater.admitted", rater, by, now, from_stage=rater.stage)
        raters.set_stage(rater=rater, to=RaterStage.WORKING, now=now)
