"""The limits of a rater: Python explains the refusal, and `claim.sql` refuses. Both agree for every combination."""

import datetime as dt
import itertools
from decimal import Decimal

import pytest
from django.db import transaction

from labeling import queue
from labeling.models import Assignment, Project, ProjectBudget, Rater
from labeling.models.project import ProjectState
from labeling.models.rater import RaterStage
from labeling.queue import claim, limits
from labeling.queue.claim import ClaimRequest
from tests import factories
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db
ARMS = ("training", "screening", "gold", "chosen", "top_up", "opinion", "reserve", "uniform", "policy")
# How many traces the rater has open, got today, and whether the budget is none, enough, or used up by the open traces.
OPEN, TODAY, BUDGETS = (0, 1, 2), (0, 1, 2), (None, "10", "0.5")


@pytest.fixture
def rater(now: dt.datetime) -> Rater:
    project = factories.make_project()
    for arm in ARMS:
        queues.fill_lane(project, 2, arm=arm)
    return factories.make_rater(project)


def give(rater: Rater, n_open: int, n_today: int, budget: str | None, now: dt.datetime) -> Rater:
    """Set limits of two. Add traces that do not count, too: returned today, submitted yesterday, open for others."""
    project = rater.project
    Project.objects.filter(pk=project.pk).update(open_limit=2, traces_per_day=2)
    lane = project.lanes.get(arm="uniform")
    yesterday, other = now - dt.timedelta(days=1), factories.make_rater(project)
    returned = {"state": "released", "ended_at": now, "holds_slot": False, "lease_ends_at": None}
    factories.make_assignment(rater, factories.make_trace(project), lane=lane, held_at=now, **returned)
    factories.make_submitted(rater, factories.make_trace(project), lane=lane, held_at=yesterday)
    factories.make_assignment(other, factories.make_trace(project), lane=lane, held_at=now)
    for _ in range(n_today):
        factories.make_submitted(rater, factories.make_trace(project), lane=lane, held_at=now)
    for _ in range(n_open):
        factories.make_assignment(rater, factories.make_trace(project), lane=lane, held_at=yesterday)
    if budget is not None:
        ProjectBudget.objects.create(project=project, amount=Decimal(budget), trace_cost=Decimal("0.2"), spent=0)
    return Rater.objects.select_related("project").get(pk=rater.pk)


@pytest.mark.fault
@pytest.mark.parametrize("stage", ["training", "screening", "working"])
def test_both_definitions_of_the_limits_agree(rater: Rater, now: dt.datetime, stage: str) -> None:
    Rater.objects.filter(pk=rater.pk).update(stage=stage)
    chance = itertools.cycle((queues.GOLD, queues.RESERVE, queues.UNIFORM, queues.POLICY))
    for n_open, n_today, budget in itertools.product(OPEN, TODAY, BUDGETS):
        with transaction.atomic():
            found = give(rater, n_open, n_today, budget, now)
            is_left = claim.is_work_left(ClaimRequest(rater.pk, now, chance=0.5))
            taken = claim.take_slot(ClaimRequest(rater.pk, now, chance=next(chance)))
            reason = refusal(found, now)
            transaction.set_rollback(True)
        case = (n_open, n_today, budget)
        assert (taken is None) == (reason is not None) == (not is_left), case
        is_full, had_enough = n_open == 2, n_today == 2 and stage == RaterStage.WORKING
        is_spent = budget == "0.5" and n_open + 2 > 2  # one trace is open for another rater: 0.2 * (open + 2) > 0.5
        expected = (
            queue.OpenTracesLimit
            if is_full
            else queue.DailyLimit
            if had_enough
            else queue.BudgetReached
            if is_spent
            else None
        )
        assert (reason and type(reason)) == expected, case


def refusal(rater: Rater, now: dt.datetime) -> queue.QueueRefusal | None:
    taken_here = Assignment.objects.open().filter(rater=rater).order_by("-pk")
    assert taken_here.count() <= 3
    with transaction.atomic():
        # The claim before may have taken a slot: it does not count here.
        newest = Assignment.objects.held().filter(rater=rater)
        newest.update(state="released", ended_at=now, holds_slot=False, lease_ends_at=None)
        try:
            limits.check_limits(rater, rater.project, now)
        except queue.QueueRefusal as error:
            return error
    return None


def test_a_closed_project_is_refused_before_a_limit(rater: Rater, now: dt.datetime) -> None:
    give(rater, 2, 2, "0.5", now)
    Project.objects.update(state=ProjectState.PAUSED)
    with pytest.raises(queue.ProjectNotOpen):
        queue.claim_trace(rater_id=rater.pk, now=now)


def test_the_open_limit_counts_the_prefetched_trace_and_lets_it_be_opened(now: dt.datetime) -> None:
    project = factories.make_project(open_limit=2)
    queues.fill_lane(project, 5)
    rater = factories.make_rater(project)
    first = queue.claim_trace(rater_id=rater.pk, now=now, opened=True)
    held = queue.claim_trace(rater_id=rater.pk, now=now)
    assert queue.claim_trace(rater_id=rater.pk, now=now).assignment_id == held.assignment_id
    queue.open_assignment(assignment_id=held.assignment_id, rater_id=rater.pk, now=now)
    with pytest.raises(queue.OpenTracesLimit):
        queue.claim_trace(rater_id=rater.pk, now=now)
    queues.submit_assignment(first.assignment_id, now)
    assert queue.claim_trace(rater_id=rater.pk, now=now)


def test_the_day_ends_at_midnight_utc() -> None:
    project = factories.make_project(traces_per_day=2)
    queues.fill_lane(project, 5)
    rater = factories.make_rater(project)
    late = dt.datetime(2026, 11, 18, 23, 59, tzinfo=dt.UTC)
    for _ in range(2):
        queues.submit_assignment(queue.claim_trace(rater_id=rater.pk, now=late, opened=True).assignment_id, late)
    with pytest.raises(queue.DailyLimit):
        queue.claim_trace(rater_id=rater.pk, now=late)
    assert queue.claim_trace(rater_id=rater.pk, now=late + dt.timedelta(minutes=1))
