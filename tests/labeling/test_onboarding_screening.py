"""The screening: the project's pass mark, its number of attempts, and what follows a pass or a failure."""

import datetime as dt
from functools import partial

import pytest

from events.models import Event
from labeling import assignments, gold_sets, onboarding, queue, raters
from labeling.models import Gold, Project, QueueEntry, Rater, ScreeningResult
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling import onboarding_project

WRONG = 0  # a step before the error


@pytest.mark.django_db
def test_mix_shows_who_passes_without_reading(now: dt.datetime) -> None:
    """Constant answers pass a set of traces without errors, but not a set with errors in half of them."""
    project = onboarding_project.make_project(screening=2, screening_pass_share=0.75)
    assert gold_sets.load_screening_mix(project) == (2, 0, 2)
    for _ in range(8):
        trace = factories.make_trace(project)
        make_gold(trace=trace, use=GoldUse.SCREENING, accepted_first_errors=[None], by=None, now=now)
    mix = gold_sets.load_screening_mix(project)
    assert mix == (10, 8, 8)
    assert mix is not None
    assert mix.passes_without_reading
    assert gold_sets.load_screening_mix(factories.make_project()) is None


def make_rater(project: Project, now: dt.datetime) -> Rater:
    return raters.ensure_member(project=project, user=factories.make_user(), now=now)


def screen(rater: Rater, now: dt.datetime, *, right: int, wrong: int = 0) -> None:
    for n in range(right + wrong):
        onboarding_project.rate_next(rater, now, first_error=onboarding_project.ERROR if n < right else WRONG)


@pytest.mark.parametrize(
    ("n_traces", "share", "mark"), [(30, 0.75, 23), (4, 0.75, 3), (10, 0.7, 7), (3, 0.1, 1), (5, 0.0, 0), (5, 1.0, 5)]
)
def test_pass_mark_is_rounded_up(n_traces: int, share: float, mark: int) -> None:
    assert gold_sets.pass_mark(n_traces, share) == mark


@pytest.mark.django_db
def test_screening_is_passed_at_the_mark(now: dt.datetime) -> None:
    project = onboarding_project.make_project(screening=4, work=1)
    rater = make_rater(project, now)
    screen(rater, now, right=2, wrong=1)
    assert onboarding_project.current_stage(rater) == "screening"
    screen(rater, now, right=1)
    result = ScreeningResult.objects.get()
    assert (result.n_right, result.n_traces, result.n_needed, result.has_passed) == (3, 4, 3, True)
    assert onboarding_project.claim_next(rater, now).purpose == "work"
    assert Event.objects.get(what="screening.passed").detail["n_right"] == 3


@pytest.mark.django_db
def test_failed_screening_gives_another_attempt_with_the_same_traces(now: dt.datetime) -> None:
    project = onboarding_project.make_project(screening=2, work=1, screening_attempts=2)
    rater = make_rater(project, now)
    assert rater.user is not None
    screen(rater, now, right=1, wrong=1)
    assert (onboarding_project.current_stage(rater), onboarding_project.refusal_of_claim(rater, now)) == (
        "retry",
        "retry",
    )
    assert onboarding.begin_next_attempt(rater_id=rater.pk, by=rater.user, now=now)
    assert not onboarding.begin_next_attempt(rater_id=rater.pk, by=rater.user, now=now)
    assert gold_sets.load_set_progress(rater=road_of(rater), purpose=AssignmentPurpose.SCREENING) == (0, 2)
    screen(rater, now, right=0, wrong=2)
    assert (onboarding_project.current_stage(rater), onboarding_project.refusal_of_claim(rater, now)) == (
        "failed",
        "failed",
    )
    assert not onboarding.begin_next_attempt(rater_id=rater.pk, by=rater.user, now=now)
    assert list(ScreeningResult.objects.order_by("attempt").values_list("n_right", flat=True)) == [1, 0]
    assert Event.objects.filter(what="screening.not_passed").count() == 2


def road_of(rater: Rater) -> Rater:
    rater.refresh_from_db()
    return rater


@pytest.mark.django_db
def test_lead_allows_another_attempt(now: dt.datetime) -> None:
    project = onboarding_project.make_project(screening=1, work=1)
    rater = make_rater(project, now)
    assert rater.user is not None
    screen(rater, now, right=0, wrong=1)
    assert onboarding_project.current_stage(rater) == "failed"
    assert onboarding.allow_another_attempt(rater_id=rater.pk, by=factories.make_user(), now=now)
    assert onboarding.begin_next_attempt(rater_id=rater.pk, by=rater.user, now=now)
    screen(rater, now, right=1)
    assert onboarding_project.claim_next(rater, now).purpose == "work"


@pytest.mark.django_db
def test_giving_up_counts_as_wrong(now: dt.datetime) -> None:
    rater = make_rater(onboarding_project.make_project(screening=1), now)
    claimed = onboarding_project.claim_next(rater, now).assignment_id
    assignments.give_up(assignment_id=claimed, rater_id=rater.pk, client="t", reason="hard", now=now, by=rater.user)
    assert ScreeningResult.objects.get().n_right == 0


@pytest.mark.django_db
def test_removed_set_does_not_block_raters(now: dt.datetime) -> None:
    project = onboarding_project.make_project(training=2, screening=2, work=1)
    rater = make_rater(project, now)
    onboarding_project.finish_training_trace(rater, now)
    QueueEntry.objects.filter(lane__arm__in=["training", "screening"]).update(slots_left=0)
    assert onboarding_project.claim_next(rater, now).purpose == "work"
    assert not ScreeningResult.objects.exists()


@pytest.mark.django_db
def test_screening_gold_that_is_not_served_blocks_no_one(now: dt.datetime) -> None:
    project = onboarding_project.make_project(work=1)
    trace = factories.make_trace(project)
    Gold.objects.create(trace=trace, use="screening", accepted_first_errors=[None], made_at=now)
    assert onboarding_project.claim_next(make_rater(project, now), now).purpose == "work"


@pytest.mark.django_db
def test_held_trace_does_not_end_the_screening(now: dt.datetime) -> None:
    rater = make_rater(onboarding_project.make_project(screening=2), now)
    first = onboarding_project.claim_next(rater, now).assignment_id
    queue.claim_trace(rater_id=rater.pk, now=now)
    onboarding_project.submit_assignment(first, rater, now)
    assert onboarding_project.current_stage(rater) == "screening"
    screen(rater, now, right=1)
    assert ScreeningResult.objects.get().n_traces == 2


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_starts_begin_one_attempt(now: dt.datetime) -> None:
    rater = make_rater(onboarding_project.make_project(screening=1, screening_attempts=3), now)
    screen(rater, now, right=0, wrong=1)
    begin = partial(onboarding.begin_next_attempt, rater_id=rater.pk, by=rater.user, now=now)  # type: ignore[arg-type]  # it has one
    assert sorted(map(str, run_at_once(begin, begin, begin))) == ["False", "False", "True"]
    rater.refresh_from_db()
    assert rater.screening_attempt == 2
