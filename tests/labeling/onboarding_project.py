"""A project with a training set and a screening set, and a rater who goes through onboarding."""

import datetime as dt
from typing import Any

from labeling import assignments, gold_sets, onboarding, queue
from labeling.models import Assignment, Project, Rater, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from labeling.queue import Claim
from tests import factories

ERROR = 1  # where the first error of every trace here is


def make_project(*, training: int = 0, screening: int = 0, work: int = 0, **fields: Any) -> Project:
    project = factories.make_project(gold_share=0, **fields)
    add_gold_trace(project, GoldUse.TRAINING, training)
    add_gold_trace(project, GoldUse.SCREENING, screening)
    lane = factories.make_lane(project)
    for number in range(work):
        factories.make_entry(lane, factories.make_trace(project), key=-number)
    return project


def add_gold_trace(project: Project, use: GoldUse, number: int) -> list[Trace]:
    traces = [factories.make_trace(project, ["One.", "Two.", "Three."]) for _ in range(number)]
    for trace in traces:
        make_gold(trace=trace, use=use, accepted_first_errors=[ERROR], by=None, now=factories.NOW)
    if traces:
        gold_sets.serve_gold_set(project=project, use=use, now=factories.NOW)
    return traces


def claim_next(rater: Rater, now: dt.datetime) -> Claim:
    return onboarding.claim_trace(rater_id=rater.pk, by=rater.user, now=now, opened=True)


def rate_next(rater: Rater, now: dt.datetime, *, first_error: int = ERROR) -> Assignment:
    """Claim the next trace and submit it with the first error at this step."""
    claimed = claim_next(rater, now)
    submit_assignment(claimed.assignment_id, rater, now, first_error=first_error)
    return Assignment.objects.get(pk=claimed.assignment_id)


def submit_assignment(assignment: int, rater: Rater, now: dt.datetime, *, first_error: int = ERROR) -> None:
    writes = [
        assignments.IncomingEdit(
            sequence=n + 1, seen=0, kind="rate", step=n, option=0, rating=-1 if n == first_error else 1
        )
        for n in range(first_error + 1 or 3)  # -1: no error anywhere
    ]
    assignments.submit(assignment_id=assignment, rater_id=rater.pk, client="t", writes=writes, now=now, by=rater.user)


def finish_training_trace(rater: Rater, now: dt.datetime) -> None:
    """Rate a training trace and acknowledge its feedback."""
    assignment = rate_next(rater, now)
    assert rater.user is not None
    onboarding.acknowledge_feedback(assignment_id=assignment.pk, rater_id=rater.pk, by=rater.user, now=now)


def current_stage(rater: Rater) -> str:
    rater.refresh_from_db()
    return rater.stage


def refusal_of_claim(rater: Rater, now: dt.datetime) -> str:
    """Return the gate at which a claim is refused, or the name of another refusal."""
    try:
        claim_next(rater, now)
    except queue.OnboardingRequired as first:
        return first.gate
    except queue.QueueRefusal as refusal:
        return type(refusal).__name__
    return ""
