"""The beat: periodic tasks are sent only when they have work."""

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from celery.beat import ScheduleEntry
from celery.signals import before_task_publish
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from events import audit_log
from jobs import control, scheduler, wakeups
from labeling.models import Assignment, ProjectBudget, ProjectStats, Settlement
from machines.models import JudgeRun
from prm.models import LoopRules
from tests import factories
from tests.machines import judged_project

pytestmark = pytest.mark.django_db

QUIET_TASKS = (
    *(
        "jobs.analyze_grown_tables",
        "jobs.sweep",
        "labeling.lapse_due",
        "labeling.refresh",
        "machines.check_passports",
        "machines.resume_due",
        "notices.send_due",
    ),
    "prm.start_due",
)


@pytest.fixture(autouse=True)
def _all_tasks_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    current_app.loader.import_default_modules()
    # Tables of the test database have grown by rows of other tests.
    monkeypatch.setitem(scheduler._checks, "jobs.analyze_grown_tables", "false")


def queue_job() -> None:
    control.request_job(kind="x", by=None, now=timezone.now())


def let_a_lease_end() -> None:
    project, ended_at = factories.make_project(), timezone.now() - dt.timedelta(minutes=1)
    assignment = factories.make_assignment(factories.make_rater(project), factories.make_trace(project))
    Assignment.objects.filter(pk=assignment.pk).update(lease_ends_at=ended_at)


def make_submission_due(*, seconds_ago: int = wakeups.BUSY_DELAY_SECONDS + 6) -> None:
    project, due_at = factories.make_project(), timezone.now() - dt.timedelta(seconds=seconds_ago)
    assignment = factories.make_assignment(factories.make_rater(project), factories.make_trace(project))
    Assignment.objects.filter(pk=assignment.pk).update(due_at=due_at)


def make_trace_due() -> None:
    project = factories.make_project()
    trace = factories.make_trace(project)
    Settlement.objects.create(project=project, trace=trace, is_due=True, changed_at=timezone.now())


def make_stats_stale() -> None:
    ProjectStats.objects.create(project=factories.make_project(), is_stale=True)


def set_budget() -> None:
    ProjectBudget.objects.create(project=factories.make_project(), amount=1, spent="0.8")


def log_event_with_notices() -> None:
    project, now = factories.make_project(), timezone.now()
    audit_log.log_event(what="import.done", by=None, now=now, project=project.pk, subject="source:1")


def make_start_rule() -> None:
    LoopRules.objects.create(project=factories.make_project(), every_n_submissions=5)


def test_idle_platform_sends_only_rare_tasks() -> None:
    assert scheduler.list_tasks_with_work() == []
    assert set(scheduler._checks) == set(QUIET_TASKS)
    scheduled = {each["task"]: each["schedule"] for each in settings.CELERY_BEAT_SCHEDULE.values()}
    frequent = {task for task, every in scheduled.items() if isinstance(every, float) and every < 3600}
    assert frequent == {scheduler.LOOK}
    assert scheduled[scheduler.LOOK] == scheduler.LOOK_SECONDS


def test_beat_leaves_a_new_submission_to_the_task_that_it_requested() -> None:
    make_submission_due(seconds_ago=wakeups.BUSY_DELAY_SECONDS)
    assert "labeling.refresh" not in scheduler.list_tasks_with_work()


def test_budget_is_no_work_until_there_is_something_to_report() -> None:
    budget = ProjectBudget.objects.create(project=factories.make_project(), amount=10, spent="7.9", trace_cost=1)
    assert "labeling.refresh" not in scheduler.list_tasks_with_work()
    rater = factories.make_rater(budget.project)
    for _ in range(2):
        factories.make_assignment(rater, factories.make_trace(budget.project))
    assert "labeling.refresh" in scheduler.list_tasks_with_work()


def pause_judge() -> None:
    run = judged_project.start_run(judged_project.make_judge(judged_project.make_project(1)))
    JudgeRun.objects.filter(pk=run.pk).update(state="paused", pause="rate_limit", resumes_at=factories.NOW)


@pytest.mark.parametrize(
    ("make_work", "task"),
    [
        (queue_job, "jobs.sweep"),
        (let_a_lease_end, "labeling.lapse_due"),
        (make_submission_due, "labeling.refresh"),
        (make_trace_due, "labeling.refresh"),
        (make_stats_stale, "labeling.refresh"),
        (set_budget, "labeling.refresh"),
        (log_event_with_notices, "notices.send_due"),
        (make_start_rule, "prm.start_due"),
        (pause_judge, "machines.resume_due"),
    ],
)
def test_task_is_sent_when_it_has_work(make_work: Callable[[], None], task: str) -> None:
    make_work()
    assert task in scheduler.list_tasks_with_work()


def test_all_tasks_are_sent_when_the_database_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scheduler._checks, "tests.broken", "1 / 0 = 1")
    with transaction.atomic():  # the savepoint ends the failed statement
        tasks = scheduler.list_tasks_with_work()
        transaction.set_rollback(True)
    assert tasks == list(scheduler._checks)


@pytest.fixture
def sent() -> Iterator[list[str]]:
    names: list[str] = []

    def note(sender: str, **_: Any) -> None:
        names.append(sender)

    before_task_publish.connect(note)
    yield names
    before_task_publish.disconnect(note)


def test_the_beat_asks_before_it_sends(sent: list[str], tmp_path: Path) -> None:
    beat = scheduler.QuietScheduler(current_app, schedule_filename=str(tmp_path / "beat"), lazy=True)
    entry = ScheduleEntry(name="look for work", task=scheduler.LOOK, schedule=10.0, app=current_app)
    beat.apply_entry(entry)
    assert sent == []
    queue_job()
    beat.apply_entry(entry)
    assert sent == ["jobs.sweep"]


def test_the_beat_sleeps_until_an_entry_is_due(tmp_path: Path) -> None:
    beat = scheduler.QuietScheduler(current_app, schedule_filename=str(tmp_path / "beat"))
    began_at = current_app.now() - dt.timedelta(seconds=3500)
    entry = ScheduleEntry(name="x", task=scheduler.LOOK, schedule=3600.0, last_run_at=began_at, app=current_app)
    beat.schedule.clear()
    beat.schedule["x"] = entry
    seconds = beat.tick()
    assert seconds >= entry.is_due().next > 0
    beat.close()
