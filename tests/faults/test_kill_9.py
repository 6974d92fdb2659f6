"""Kill every part at random moments during rating and an import: no acknowledged write is lost, nothing is done twice,
and no job is stuck."""

import datetime as dt
import json
import os
import random
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from events import append_only
from jobs import control
from jobs.models import Job
from labeling import queue
from labeling.models import Assignment, Judgment, Project, QueueEntry, RatingEdit, Submission, Trace
from labeling.models.project import Protocol
from labeling.models.trace import ImportedLabelKind
from labeling.traces import import_job
from labeling.traces.scan import ImportOptions
from tests import factories, servers
from tests.faults import platforms
from tests.faults.http_raters import HttpBrowser, HttpRaterThread
from tests.faults.platforms import PlatformUnderTest

SEED = int(os.environ.get("FAULT_SEED", "20261118"))  # to kill at other moments: FAULT_SEED=7 ./test -k lost
RATERS, TRACES, OVERLAP, KILLS = 3, 400, 2, 5
RECORDS = 15_000  # a job that takes some seconds


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", [platforms.OneMachine, platforms.ManyMachines])
def test_nothing_acknowledged_is_lost_and_no_job_is_stuck(
    tmp_path: Path, kind: type[PlatformUnderTest], started_data: Path
) -> None:
    chance, is_over = random.Random(SEED), threading.Event()
    with platforms.running_platform(tmp_path, kind, started_data) as platform, servers.publish_to(platform.broker):
        project = make_work()
        raters = [make_rater(platform, project, number, is_over) for number in range(RATERS)]
        job = request_import(project, tmp_path / "traces.jsonl")
        for rater in raters:
            rater.start()
        try:
            killed = kill_at_random(platform, job, chance)
            servers.wait_until(partial(have_done_enough, raters), what="enough of each rater")
        finally:
            is_over.set()
            for rater in raters:
                rater.join()
        wait_for(job)
        assert set(killed) == set(platform.parts)
        assert_nothing_is_lost(raters)
        assert_slots_add_up(project)
        assert_file_was_imported_once(job)
        assert_triggers_exist()


def make_work() -> Project:
    """Make traces to rate. All steps are rated, so any rating may follow any other."""
    with transaction.atomic():
        project = factories.make_project(protocol=Protocol.EVERY_STEP, overlap=OVERLAP)
        traces = [factories.make_trace(project).pk for _ in range(TRACES)]
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=traces, slots=OVERLAP, now=timezone.now())
    return project


def make_rater(platform: PlatformUnderTest, project: Project, number: int, is_over: threading.Event) -> HttpRaterThread:
    user = factories.make_user()
    factories.make_rater(project, user)
    return HttpRaterThread(HttpBrowser(platform.url, user, lambda: not is_over.is_set()), project.slug, seed=number)


def request_import(project: Project, file: Path, *, records: int = RECORDS) -> Job:
    with file.open("w") as lines:
        for number in range(records):
            record = {
                "problem": f"{file.stem}: what is {number} + 1?",
                "steps": ["Add one.", f"So it is {number + 1}."],
            }
            lines.write(json.dumps(record) + "\n")
    choices = ImportOptions(labels=ImportedLabelKind.NONE)
    return import_job.request_import(project=project, path=file, choices=choices, by=None, now=timezone.now())


def kill_at_random(platform: PlatformUnderTest, job: Job, chance: random.Random) -> Counter[str]:
    """Kill each part at least once, starting with the worker during the job."""
    rest = [part for part in platform.parts if part != "worker"]
    rest += chance.choices(["web", "worker"], k=KILLS - 1 - len(rest))
    chance.shuffle(rest)
    servers.wait_until(lambda: Job.objects.filter(pk=job.pk, done__gt=0).exists(), what="the first chunk")
    victims = ["worker", *rest]
    for part in victims:
        platform.kill(part, chance)
        if part in {"worker", "preload", "supervisor"}:
            expire_leases()
        time.sleep(chance.uniform(0.3, 1.5))
    return Counter(victims)


def have_done_enough(raters: list[HttpRaterThread]) -> bool:
    """Return whether there are enough writes to check: a slow machine may have few of them after the last kill."""
    each = min(len(rater.acknowledged) for rater in raters)
    together = sum(len(rater.submitted) for rater in raters)
    return (each > 20 and together > 5) or any(rater.refusals for rater in raters)


def expire_leases() -> None:
    """Expire the leases of running jobs, which would take twenty seconds."""
    now = timezone.now()
    Job.objects.filter(state="running").update(lease_ends_at=now - dt.timedelta(seconds=1))
    control.sweep_jobs(now=now)


def wait_for(job: Job) -> None:
    def is_done() -> bool:
        control.sweep_jobs(now=timezone.now(), patience=dt.timedelta(seconds=3))
        state, failure = Job.objects.values_list("state", "failure").get(pk=job.pk)
        assert state != "failed", failure
        time.sleep(0.2)
        return bool(state == "done")

    servers.wait_until(is_done, what="the end of the job")


def assert_nothing_is_lost(raters: list[HttpRaterThread]) -> None:
    writes = RatingEdit.objects.values_list("assignment", "client", "sequence", "step", "rating")
    edits = {tuple(key): (step, rating) for *key, step, rating in writes}
    cells = Judgment.objects.values_list("turn__assignment", "turn__step__position", "rating")
    current = {(assignment, step): rating for assignment, step, rating in cells}
    submitted = set(Submission.objects.filter(assignment__state="submitted").values_list("assignment", flat=True))
    for rater in raters:
        assert {key: edits.get(key) for key in rater.acknowledged} == rater.acknowledged
        # The last write without a response may or may not have been saved.
        sure = {cell: rating for cell, rating in rater.current_ratings.items() if cell != rater.unanswered_write}
        assert {cell: current.get(cell) for cell in sure} == sure
        assert rater.submitted <= submitted
        assert rater.refusals == []
    assert sum(rater.browser.unanswered for rater in raters) > 0, "no request failed because of a kill"


def assert_slots_add_up(project: Project) -> None:
    held = Counter(Assignment.objects.filter(project=project, holds_slot=True).values_list("trace", flat=True))
    entries = QueueEntry.objects.filter(lane__project=project).values("trace")
    # More slots than the overlap if raters disagreed and an additional label was requested.
    rows = entries.annotate(given=Sum("slots"), left=Sum("slots_left")).values_list("trace", "given", "left")
    assert {trace: held[trace] + left for trace, _, left in rows} == {trace: given for trace, given, _ in rows}
    assert all(given >= OVERLAP for _, given, _ in rows)


def assert_file_was_imported_once(job: Job) -> None:
    job.refresh_from_db()
    assert (job.done, job.total) == (RECORDS, RECORDS)
    assert job.attempt > 1, "no kill hit the job"
    assert Trace.objects.filter(source=job.arguments["source"]).count() == RECORDS
    assert job.result["report"]["traces_added"] == RECORDS


def assert_triggers_exist() -> None:
    assert append_only.missing_triggers() == []
