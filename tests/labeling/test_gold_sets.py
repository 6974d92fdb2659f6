"""Gold is served as gold and no longer as work."""

import datetime as dt

import pytest

from labeling import gold_sets, queue, raters
from labeling.models import Gold, QueueEntry
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.quality.gold import InvalidGold, retire_gold
from tests import factories
from tests.labeling import onboarding_project

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("use", "arm"), [("training", "training"), ("screening", "screening"), ("hidden", "gold")])
def test_new_gold_is_served_and_is_no_longer_work(use: str, arm: str, now: dt.datetime) -> None:
    project = onboarding_project.make_project(work=1)
    trace = project.traces.get()
    gold_sets.make_served_gold(trace=trace, use=GoldUse(use), accepted_first_errors=[1], by=None, now=now)
    entries = QueueEntry.objects.filter(trace=trace, is_open=True)
    assert list(entries.values_list("lane__arm", flat=True)) == [arm]


def test_canary_is_never_served(now: dt.datetime) -> None:
    project = onboarding_project.make_project(work=1)
    gold_sets.make_served_gold(
        trace=project.traces.get(), use=GoldUse.CANARY, accepted_first_errors=[1], by=None, now=now
    )
    assert not QueueEntry.objects.filter(is_open=True).exists()


def test_refused_gold_stays_work(now: dt.datetime) -> None:
    project = onboarding_project.make_project(work=1)
    with pytest.raises(InvalidGold):
        gold_sets.make_served_gold(
            trace=project.traces.get(), use=GoldUse.TRAINING, accepted_first_errors=[99], by=None, now=now
        )
    assert QueueEntry.objects.get(is_open=True).lane.arm == "uniform"


def test_retired_gold_leaves_the_set(now: dt.datetime) -> None:
    project = onboarding_project.make_project(training=2)
    retire_gold(gold=Gold.objects.order_by("pk")[0], by=None, now=now)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    assert gold_sets.load_set_progress(rater=rater, purpose=AssignmentPurpose.TRAINING) == (0, 1)
    onboarding_project.finish_training_trace(rater, now)
    assert onboarding_project.current_stage(rater) == "working"


def test_position_counts_held_traces_last(now: dt.datetime) -> None:
    project = onboarding_project.make_project(screening=3)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    in_hand = onboarding_project.claim_next(rater, now).assignment_id
    ahead = queue.claim_trace(rater_id=rater.pk, now=now + dt.timedelta(seconds=1)).assignment_id
    of = rater.assignments.select_related("rater")
    assert [gold_sets.position_in_set(of.get(pk=pk)) for pk in (in_hand, ahead)] == [(1, 3), (2, 3)]
