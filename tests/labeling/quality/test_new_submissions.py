"""Submissions are counted and scored in the background, and a pause does not tell which trace was gold."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from labeling import assignments, queue, raters
from labeling.models import AgreementTally, Assignment, GoldAnswer, Rater, Settlement
from labeling.models.gold import GoldUse
from labeling.quality import gold_monitor, new_submissions
from labeling.quality.gold import make_gold
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def submit(rater: Rater, purpose: str, *, is_gold: bool) -> Assignment:
    """Submit a trace without the work of the background."""
    trace = factories.make_trace(rater.project)
    if is_gold:
        make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    assignment = factories.make_assignment(rater, trace, purpose=purpose)
    client = WorkPageClient(assignment)
    client.rate([1, 1, 1])
    assignments.submit(**client.place, now=NOW, by=rater.user)
    return assignment


def test_submit_runs_the_same_statements_for_gold_and_work() -> None:
    rater = factories.make_rater(factories.make_project(gold_bar=0.8))
    submit(rater, "work", is_gold=False)  # fills caches
    statements = []
    for purpose in ("work", "gold"):
        trace = factories.make_trace(rater.project)
        make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
        assignment = factories.make_assignment(rater, trace, purpose=purpose)
        client = WorkPageClient(assignment)
        client.rate([1, 1, 1])
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assignments.submit(**client.place, now=NOW, by=rater.user)
        statements.append([str(query["sql"]).partition(" ")[0] for query in captured.captured_queries])
    assert statements[0] == statements[1]
    assert not GoldAnswer.objects.exists()
    assert not AgreementTally.objects.exists()


def test_background_counts_work_and_scores_gold_once() -> None:
    rater = factories.make_rater(factories.make_project())
    work, gold = submit(rater, "work", is_gold=False), submit(rater, "gold", is_gold=True)
    assert new_submissions.process_new_submissions(now=NOW) == 2
    assert set(AgreementTally.objects.values_list("trace_id", flat=True)) == {work.trace_id}
    assert Settlement.objects.get().trace_id == work.trace_id
    answer = GoldAnswer.objects.get()
    assert (answer.assignment_id, answer.verdict, answer.answered_at) == (gold.pk, "missed", NOW)
    assert new_submissions.process_new_submissions(now=NOW) == 0


def test_correction_is_counted_again() -> None:
    rater = factories.make_rater(factories.make_project())
    assignment = submitted_work.submit_trace(rater, factories.make_trace(rater.project), [1, 1, 1])
    Settlement.objects.update(is_due=False)
    submitted_work.correct_step(assignment, 2, -1)
    assert Settlement.objects.get().is_due


def test_submission_that_fails_is_tried_later_and_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rater = factories.make_rater(factories.make_project())
    broken, good = submit(rater, "gold", is_gold=True), submit(rater, "work", is_gold=False)
    with monkeypatch.context() as patch:
        patch.setattr(gold_monitor, "judge_first_error", lambda **_: 1 / 0)
        assert new_submissions.process_new_submissions(now=NOW) == 1
    assert Settlement.objects.get().trace_id == good.trace_id
    assert new_submissions.process_new_submissions(now=NOW) == 0
    assert new_submissions.process_new_submissions(now=NOW + new_submissions.RETRY_AFTER) == 1
    assert GoldAnswer.objects.get().assignment_id == broken.pk


@pytest.mark.fault
def test_pause_takes_effect_after_a_random_number_of_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raters, "MAX_TRACES_BEFORE_PAUSE", 5)
    project = factories.make_project(gold_bar=0.85)
    delays: list[int] = []
    for _ in range(12):
        rater, n_more = factories.make_rater(project), 0
        for n in range(5):  # the fifth miss crosses the bound
            submit(rater, "gold", is_gold=True)
            new_submissions.process_new_submissions(now=NOW + dt.timedelta(minutes=n))
        rater.refresh_from_db()
        assert rater.paused_at is None
        assert rater.pending_pause is not None
        while rater.paused_at is None:
            submitted_work.submit_trace(rater, factories.make_trace(project), [1, 1, 1])
            rater.refresh_from_db()
            n_more += 1
        assert rater.pending_pause is None
        assert rater.is_paused_by_check
        with pytest.raises(queue.RaterPaused):
            queue.claim_trace(rater_id=rater.pk, now=NOW)
        delays.append(n_more)
    assert min(delays) >= 1
    assert max(delays) <= 5
    assert len(set(delays)) > 1


def test_pause_and_resume_by_a_lead_end_a_scheduled_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raters, "MAX_TRACES_BEFORE_PAUSE", 5)
    rater = factories.make_rater(factories.make_project())
    assert raters.schedule_pause(rater=rater, reason="r", note="n", now=NOW, evidence={})
    assert not raters.schedule_pause(rater=rater, reason="r", note="n", now=NOW, evidence={})
    assert raters.pause_rater(rater=rater, reason="Let us talk.", by=None, now=NOW)
    rater.refresh_from_db()
    assert rater.pending_pause is None
