"""Pauses by overwhelming evidence: the pause, its reason, what leads see, and what starts over."""

import datetime as dt
from typing import Any

import pytest

from events.models import Event
from labeling import queue, raters
from labeling.models import FirstErrorReport, Project, ProjectStats, Rater
from labeling.models.gold import GoldUse
from labeling.quality import project_stats, protection, resolve, signals
from labeling.quality.gold import make_gold
from tests import factories
from tests.labeling.quality import submitted_work
from tests.labeling.quality.test_set_aside import put_aside, undo

pytestmark = [pytest.mark.django_db, pytest.mark.fault]
NOW = factories.NOW


def label(project: Project, people: list[Rater], *, n: int, at: dt.datetime = NOW) -> None:
    """Let the first rater mark everything positive, and the others find the error."""
    for number in range(n):
        trace = factories.make_trace(project)
        for rater in (people[0], people[1 + number % (len(people) - 1)]):
            submitted_work.submit_trace(rater, trace, [1, 1, 1] if rater == people[0] else [1, -1], now=at)
    resolve.resolve_due_traces(now=at)


def refresh(project: Project, *, now: dt.datetime = NOW) -> dict[str, Any]:
    """Return the stored figures by rater."""
    project_stats.mark_stats_stale(project_id=project.pk, now=now)
    project_stats.refresh_project_stats(project_id=project.pk, now=now)
    figures: dict[str, Any] = ProjectStats.objects.get(pk=project.pk).content["raters"]
    return figures


def list_paused(project: Project) -> list[int]:
    return list(Rater.objects.filter(project=project, paused_at__isnull=False).values_list("pk", flat=True))


def test_pause_names_the_check_and_records_the_evidence() -> None:
    project = factories.make_project()
    people = submitted_work.make_raters(project, 4)
    label(project, people, n=20)
    stored = refresh(project)[str(people[0].pk)]["protection"]
    assert list_paused(project) == [people[0].pk]
    paused = Rater.objects.get(pk=people[0].pk)
    assert paused.is_paused_by_check
    assert "gold" not in paused.paused_reason
    event = Event.objects.get(what="rater.paused")
    assert (event.by, event.detail["evidence"]) == (None, stored)
    with pytest.raises(queue.RaterPaused) as refusal:
        queue.claim_trace(rater_id=paused.pk, now=NOW)
    by_check = str(refusal.value)
    Rater.objects.filter(pk=paused.pk).update(is_paused_by_check=False)
    assert queue.ineligibility_reason(Rater.objects.get(pk=paused.pk), project) != by_check
    status = protection.describe_protection({"protection": stored})
    assert status is not None
    assert status.rate <= status.limit
    assert [signal.n for signal in status.signals] == [0, 20, 19, 0]


def test_nobody_is_paused_if_the_project_says_so() -> None:
    project = factories.make_project(uses_protection=False)
    people = submitted_work.make_raters(project, 4)
    label(project, people, n=20)
    stored = refresh(project)[str(people[0].pk)]["protection"]
    assert (stored["is_overwhelming"], list_paused(project)) == (True, [])


def test_evidence_starts_over_after_a_resume() -> None:
    project = factories.make_project()
    people = submitted_work.make_raters(project, 4)
    label(project, people, n=20)
    refresh(project)
    later = NOW + dt.timedelta(hours=1)
    assert raters.resume_rater(rater=people[0], by=None, now=later)
    label(project, people, n=2, at=later + dt.timedelta(minutes=1))
    stored = refresh(project, now=later + dt.timedelta(minutes=2))[str(people[0].pk)]["protection"]
    assert (stored["n"], list_paused(project)) == (2, [])


def test_hidden_gold_counts_without_other_raters() -> None:
    project = factories.make_project()
    rater = factories.make_rater(project)
    for _ in range(20):
        trace = factories.make_trace(project)
        make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=None, now=NOW)
        submitted_work.submit_trace(rater, trace, [1, 1, 1], purpose="gold")
    stored = refresh(project)[str(rater.pk)]["protection"]
    assert stored["signals"]["gold"]["n"] == 20
    assert list_paused(project) == [rater.pk]


def test_labelers_of_files_are_weighed_but_never_paused() -> None:
    project = factories.make_project()
    people = submitted_work.make_raters(project, 4)
    label(project, people, n=20)
    Rater.objects.filter(pk=people[0].pk).update(kind="imported", user=None)
    assert "protection" not in refresh(project)[str(people[0].pk)]
    assert list_paused(project) == []


def test_reports_past_the_end_of_a_trace_are_left_out() -> None:
    """An imported file can rate steps that the trace does not have."""
    project = factories.make_project()
    people = submitted_work.make_raters(project, 4)
    label(project, people, n=4)
    FirstErrorReport.objects.filter(rater=people[1]).update(first_error=99)
    rows = signals.load_submission_rows(project_id=project.pk)
    assert people[1].pk not in protection.weigh_raters(project_id=project.pk, submissions=rows)


def test_labels_that_are_set_aside_are_no_evidence_about_anyone() -> None:
    project = factories.make_project()
    people = submitted_work.make_raters(project, 4)
    label(project, people, n=6)
    trace = factories.make_trace(project)
    make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=None, now=NOW)
    for rater in people[:2]:
        submitted_work.submit_trace(rater, trace, [1, 1, 1], purpose="gold")

    def weigh() -> dict[int, dict[str, Any]]:
        rows = signals.load_submission_rows(project_id=project.pk)
        return protection.weigh_raters(project_id=project.pk, submissions=rows)

    before = weigh()
    made = put_aside(people[0])
    after = weigh()
    assert before.keys() - after.keys() == {people[0].pk}
    assert before[people[1].pk]["signals"]["gold"] == after[people[1].pk]["signals"]["gold"]
    # Their traces have no other reports any longer.
    assert [after[rater.pk]["signals"]["agreement"]["log_e"] for rater in people[1:]] == [0.0, 0.0, 0.0]
    assert before[people[1].pk]["signals"]["agreement"]["n"] > after[people[1].pk]["signals"]["agreement"]["n"]
    undo(made)
    assert weigh() == before


def test_live_projects_have_no_evidence() -> None:
    project = factories.make_project(protocol="live")
    assert protection.weigh_raters(project_id=project.pk, submissions=[]) == {}
