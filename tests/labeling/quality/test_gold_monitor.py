"""The monitor pauses raters below the gold threshold until a lead resumes them."""

import datetime as dt
import re
from functools import partial

import pytest

from events.models import Event
from labeling import assignments, queue, raters
from labeling.models import Assignment, GoldAnswer, Project, Rater, ScreeningResult
from labeling.models.gold import GoldUse
from labeling.quality import gold_monitor
from labeling.quality.gold import enqueue_gold, make_gold, retire_gold
from labeling.quality.gold_monitor import set_gold_threshold
from stats.estimates import Reason
from tests import factories
from tests.concurrency import run_at_once
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def meet(rater: Rater, *, right: bool, at: int = 0, **fields: object) -> None:
    """Submit one more hidden gold trace as the rater."""
    trace = factories.make_trace(rater.project)
    make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    submitted_work.submit_trace(
        rater, trace, [-1] if right else [1, 1, 1], purpose="gold", now=NOW + dt.timedelta(minutes=at)
    )
    rater.refresh_from_db()


def project(bar: float | None = 0.85) -> Project:
    return factories.make_project(gold_bar=bar)


def test_pause_has_a_reason_for_the_rater_and_a_note_for_leads() -> None:
    rater = factories.make_rater(project())
    met = 0
    while rater.paused_at is None:
        meet(rater, right=False, at=met)
        met += 1
    assert met == 5  # each miss adds ln 2, and 2.944 is the bound
    assert re.findall(r"\d+", rater.paused_note) == ["0", "5", "85"]
    assert rater.paused_reason
    assert "gold" not in rater.paused_reason
    event = Event.objects.get(what="rater.paused")
    assert (event.by, event.subject) == (None, f"rater:{rater.pk}")
    with pytest.raises(queue.RaterPaused) as told:
        queue.claim_trace(rater_id=rater.pk, now=NOW)
    assert "gold" not in str(told.value)


@pytest.mark.fault
@pytest.mark.usefixtures("real_connections")
def test_concurrent_gold_answers_pause_once_and_are_all_scored() -> None:
    """The rater submits gold in two tabs at the same moment while a lead pauses them: every answer is scored, there is
    one pause, and traces opened before are still accepted."""
    rater = factories.make_rater(project())
    for n in range(4):
        meet(rater, right=False, at=n)
    opened = factories.make_assignment(rater, factories.make_trace(rater.project))
    told = run_at_once(
        *(partial(meet, Rater.objects.get(), right=False, at=9) for _ in range(2)),
        partial(raters.pause_rater, rater=Rater.objects.get(), reason="Let us talk.", by=None, now=NOW),
    )
    assert not [each for each in told if isinstance(each, Exception)], told
    assert GoldAnswer.objects.count() == 6
    assert Event.objects.filter(what="rater.paused").count() == 1
    client = WorkPageClient(opened)
    client.rate([1, 1, 1])
    assert assignments.submit(**client.place, now=NOW, by=rater.user).finish_reason == "solution"
    with pytest.raises(queue.RaterPaused):
        queue.claim_trace(rater_id=rater.pk, now=NOW)


@pytest.mark.fault
def test_good_raters_and_projects_without_a_threshold_are_not_paused() -> None:
    good, unwatched = factories.make_rater(project()), factories.make_rater(project(None))
    for n in range(8):
        meet(good, right=n != 3, at=n)
        meet(unwatched, right=False, at=n)
    assert (good.paused_at, unwatched.paused_at) == (None, None)


def test_monitoring_starts_over_after_resume() -> None:
    rater = factories.make_rater(project())
    for n in range(5):
        meet(rater, right=False, at=n)
    assert rater.paused_at is not None
    assert raters.resume_rater(rater=rater, by=None, now=NOW + dt.timedelta(minutes=9))
    meet(rater, right=False, at=10)
    assert rater.paused_at is None
    assert not raters.resume_rater(rater=rater, by=None, now=NOW)


def test_pause_returns_prefetched_assignments() -> None:
    rater = factories.make_rater(project())
    factories.make_assignment(rater, factories.make_trace(rater.project), state="held", opened_at=None)
    assert raters.pause_rater(rater=rater, reason="Let us talk.", by=None, now=NOW)
    assert Assignment.objects.get().state == "released"
    assert not raters.pause_rater(rater=rater, reason="Again.", by=None, now=NOW)


@pytest.mark.fault
def test_baseline_is_the_first_quartile_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    place = project(None)
    assert set_gold_threshold(project=place, now=NOW) is None
    everybody = submitted_work.make_raters(place, 5)
    for rater, n_right in zip(everybody, (40, 36, 32, 28, 24), strict=True):
        keep_answers(rater, n_right, 40)
    assert set_gold_threshold(project=place, now=NOW) == pytest.approx(0.7)
    place.refresh_from_db()
    assert place.gold_bar == pytest.approx(0.7)
    assert set_gold_threshold(project=place, now=NOW) is None


@pytest.mark.fault
def test_baseline_uses_screened_raters_if_there_is_a_screening() -> None:
    place = project(None)
    passed, admitted = submitted_work.make_raters(place, 5), submitted_work.make_raters(place, 2)
    for rater, n_right in zip(passed, (40, 36, 32, 28, 24), strict=True):
        ScreeningResult.objects.create(
            rater=rater, attempt=1, n_traces=4, n_right=3, n_needed=3, has_passed=True, decided_at=NOW
        )
        keep_answers(rater, n_right, 40 if rater != passed[0] else 39)
    assert gold_monitor.uses_screening(project_id=place.pk)
    for rater in admitted:  # admitted by a lead, and always wrong
        keep_answers(rater, 0, 40)
    assert gold_monitor.measure_baseline_accuracy(project_id=place.pk) == Reason.FEW_GOLD
    keep_answers(passed[0], 1, 1)
    assert set_gold_threshold(project=place, now=NOW) == pytest.approx(0.7)


def test_project_uses_screening_once_its_set_is_served() -> None:
    place = project(None)
    trace = factories.make_trace(place)
    made = make_gold(trace=trace, use=GoldUse.SCREENING, accepted_first_errors=[0], by=None, now=NOW)
    assert not gold_monitor.uses_screening(project_id=place.pk)
    enqueue_gold(project_id=place.pk, use=GoldUse.SCREENING, trace_ids=[trace.pk], now=NOW)
    assert gold_monitor.uses_screening(project_id=place.pk)
    retire_gold(gold=made, by=None, now=NOW)
    assert not gold_monitor.uses_screening(project_id=place.pk)


def keep_answers(rater: Rater, n_right: int, n: int) -> None:
    trace = factories.make_trace(rater.project)
    gold = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    for number in range(n):
        assignment = factories.make_assignment(
            rater, trace, attempt=number + 1, state="released", holds_slot=False, ended_at=NOW
        )
        GoldAnswer.objects.create(
            assignment=assignment,
            gold=gold,
            project=rater.project,
            rater=rater,
            use="hidden",
            verdict="right" if number < n_right else "missed",
            answered_at=NOW,
        )


def test_monitor_uses_hidden_gold_only() -> None:
    rater = factories.make_rater(project())
    trace = factories.make_trace(rater.project)
    gold = make_gold(trace=trace, use=GoldUse.TRAINING, accepted_first_errors=[0], by=None, now=NOW)
    for attempt in range(1, 9):
        submitted_work.submit_trace(rater, trace, [1, 1, 1], purpose="training", attempt=attempt)
    rater.refresh_from_db()
    assert (gold.answers.count(), rater.paused_at) == (8, None)


def test_trusted_raters_get_less_gold_after_14_days() -> None:
    """Logged once; a rater who was paused and resumed is treated as new."""
    place = factories.make_project(gold_share=0.5, proven_gold_share=0.1)
    rater, newcomer = submitted_work.make_raters(place, 2)
    for each, days in ((rater, 14), (newcomer, 13)):
        begun = NOW - dt.timedelta(days=days)
        factories.make_submitted(each, factories.make_trace(place), held_at=begun, opened_at=begun)
    assert gold_monitor.mark_trusted_raters(project_id=place.pk, now=NOW) == 1
    assert gold_monitor.mark_trusted_raters(project_id=place.pk, now=NOW) == 0
    assert Event.objects.get(what="rater.proven").subject == f"rater:{rater.pk}"
    for arm in ("gold", "uniform"):
        lane = factories.make_lane(place, arm=arm)
        for _ in range(4):
            factories.make_entry(lane, factories.make_trace(place), slots=9)
    claimed = [queue.claim_trace(rater_id=each.pk, now=NOW, chance=0.3).arm for each in (rater, newcomer)]
    assert claimed == ["uniform", "gold"]
    raters.pause_rater(rater=rater, reason="Let us talk.", by=None, now=NOW)
    raters.resume_rater(rater=rater, by=None, now=NOW)
    assert queue.claim_trace(rater_id=rater.pk, now=NOW, chance=0.3).arm == "gold"
    assert gold_monitor.mark_trusted_raters(project_id=place.pk, now=NOW) == 0
