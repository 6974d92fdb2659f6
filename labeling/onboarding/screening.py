"""Screening: a set of traces without explanations, the project's mark, and a number of attempts. As PRM800K did it: the
unit is the trace, right when its first error lies in the accepted set."""

import datetime as dt
import math

from django.db import transaction

from accounts.models import User
from labeling.models import Rater, ScreeningResult
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.rater import RaterStage
from labeling.onboarding import gold_sets, stages
from labeling.quality.gold_scoring import load_gold_accuracy


def pass_mark(n_traces: int, share: float) -> int:
    """How many of so many must be right. 0.7 of 10 is 7, whatever floating point makes of it."""
    return math.ceil(round(share * n_traces, 9))


def decide_screening(*, rater: Rater, by: User | None, now: dt.datetime) -> None:
    """The caller holds the rater's row, whose project came with it."""
    if not gold_sets.is_set_complete(rater, AssignmentPurpose.SCREENING):
        return
    met = load_gold_accuracy(rater_id=rater.pk, use=GoldUse.SCREENING, attempt=rater.screening_attempt)
    if not met.n:
        # The set was taken away before anything was asked.
        stages.set_stage(rater=rater, to=RaterStage.WORKING, now=now)
        return
    _record_result(rater, met.right, met.n, by, now)


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
    stages.set_stage(rater=rater, to=RaterStage.WORKING if has_passed else failed_to, now=now)
    detail = {"attempt": rater.screening_attempt, "n_right": n_right, "n_traces": n_traces, "n_needed": mark}
    stages.log_rater_event("screening.passed" if has_passed else "screening.not_passed", rater, by, now, **detail)


def begin_next_attempt(*, rater_id: int, by: User, now: dt.datetime) -> bool:
    """Begin the next attempt. False where none is to be begun: pressed twice, one begins."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        if rater.stage != RaterStage.RETRY:
            return False
        rater.screening_attempt += 1
        rater.save(update_fields=["screening_attempt"])
        stages.set_stage(rater=rater, to=RaterStage.SCREENING, now=now)
        stages.log_rater_event("screening.begun_again", rater, by, now, attempt=rater.screening_attempt)
    return True


def allow_another_attempt(*, rater_id: int, by: User, now: dt.datetime) -> bool:
    """A lead gives somebody who did not pass another attempt. False where there is nobody who waits for one."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        if rater.stage != RaterStage.FAILED:
            return False
        stages.set_stage(rater=rater, to=RaterStage.RETRY, now=now)
        stages.log_rater_event("screening.allowed_again", rater, by, now, after_attempt=rater.screening_attempt)
    return True


def admit_rater(*, rater_id: int, by: User | None, now: dt.datetime) -> None:
    """A lead lets somebody work whom they know: without training, without screening."""
    with transaction.atomic():
        rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
        if rater.stage == RaterStage.WORKING:
            return
        stages.log_rater_event("rater.admitted", rater, by, now, from_stage=rater.stage)
        stages.set_stage(rater=rater, to=RaterStage.WORKING, now=now)
