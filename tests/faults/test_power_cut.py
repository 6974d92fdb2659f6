"""Cut the power at random moments of rating and importing: every acknowledged write is there, and every job ends.

`POWER_CUTS=200 FAULT_SEED=7` sets how many cuts are spread over WRITES acknowledged writes, and the random moments."""

import os
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from celery import current_app
from django.utils import timezone

from jobs.models import Job, JobState
from labeling.models import Project, RatingEdit, Submission, Trace
from supervisor import database
from tests import factories, servers
from tests.faults import platforms, test_kill_9
from tests.faults.http_raters import HttpBrowser, HttpRaterThread
from tests.faults.power_cut import PowerCutter, flushed_position
from tests.supervisor import platform_process

CUTS = int(os.environ.get("POWER_CUTS", "4"))
WRITES = 2000 if CUTS >= 200 else 10 * CUTS
JOBS = 20 if CUTS >= 200 else 2
RATERS, RECORDS = 3, 300


class PoweredRun:
    """Raters and imports on a platform, with a power cut now and then."""

    def __init__(self, platform: platforms.OneMachine, folder: Path, chance: random.Random) -> None:
        self.platform, self.folder, self.chance = platform, folder, chance
        self.project = test_kill_9.make_work()
        self.jobs: list[Job] = []
        self.is_over, self.may_rate = threading.Event(), threading.Event()
        self.raters = [self._make_rater(number) for number in range(RATERS)]
        self.cutter = PowerCutter(platform.data, chance)

    def _make_rater(self, number: int) -> HttpRaterThread:
        user = factories.make_user()
        factories.make_rater(self.project, user)
        return HttpRaterThread(HttpBrowser(self.platform.url, user, self._is_running), self.project.slug, seed=number)

    def _is_running(self) -> bool:
        self.may_rate.wait()  # raters pause while a cut is examined
        return not self.is_over.is_set()

    def acknowledged(self) -> int:
        return sum(len(rater.acknowledged) for rater in self.raters)

    def run(self) -> None:
        for rater in self.raters:
            rater.start()
        try:
            for number in range(CUTS):
                self._request_jobs(number)
                self._let_raters_write(until=(number + 1) * WRITES // CUTS)
                self.examine_cut(number)
        finally:
            self.is_over.set()
            self.may_rate.set()
            for rater in self.raters:
                rater.join()
        assert [rater.refusals for rater in self.raters] == [[] for _ in self.raters]

    def _request_jobs(self, number: int) -> None:
        while len(self.jobs) < min(JOBS, (number + 1) * JOBS // CUTS + 1):
            file = self.folder / f"traces-{len(self.jobs)}.jsonl"
            self.jobs.append(test_kill_9.request_import(self.project, file, records=RECORDS))

    def _let_raters_write(self, *, until: int) -> None:
        wanted = max(until - self.chance.randrange(WRITES // CUTS), self.acknowledged() + 1)
        self.may_rate.set()
        servers.wait_until(lambda: self.acknowledged() >= wanted, what="acknowledged writes")

    def examine_cut(self, number: int) -> None:
        """Cut the power while raters write, and start the server on what is left."""
        promised = {key for rater in self.raters for key in list(rater.acknowledged)}
        submitted = {assignment for rater in self.raters for assignment in list(rater.submitted)}
        left = self.folder / f"cut-{number}"
        if not self.cutter.cut(left / "postgresql", flushed_position()):
            self.cutter.take_base()
            promised = {key for rater in self.raters for key in list(rater.acknowledged)}
            submitted = {assignment for rater in self.raters for assignment in list(rater.submitted)}
            assert self.cutter.cut(left / "postgresql", flushed_position())
        self.may_rate.clear()
        is_last = number == CUTS - 1
        with start_on(left, is_whole_platform=is_last):
            edits = set(RatingEdit.objects.values_list("assignment", "client", "sequence"))
            assert promised - edits == set()
            assert submitted - set(Submission.objects.values_list("assignment", flat=True)) == set()
            assert {job.pk for job in self.jobs} <= set(Job.objects.values_list("pk", flat=True))
            for job in self.jobs:
                if is_last:
                    servers.wait_until(partial(has_ended, job), what="the end of an import", within=120)
                else:
                    resume(job)
                assert Job.objects.get(pk=job.pk).state == JobState.DONE
                assert Trace.objects.filter(source=job.arguments["source"]).count() == RECORDS
        shutil.rmtree(left)


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
def test_power_cut_loses_nothing_acknowledged(tmp_path: Path, started_data: Path) -> None:
    current_app.loader.import_default_modules()
    chance = random.Random(test_kill_9.SEED)
    with (
        platforms.running_platform(tmp_path, platforms.OneMachine, started_data) as platform,
        servers.publish_to(platform.broker),
    ):
        assert isinstance(platform, platforms.OneMachine)
        run = PoweredRun(platform, tmp_path, chance)
        run.run()
        assert run.acknowledged() >= WRITES // 2
        assert len(run.jobs) == JOBS
        assert Project.objects.count() == 1


@contextmanager
def start_on(folder: Path, *, is_whole_platform: bool) -> Iterator[None]:
    """Start PostgreSQL, or the whole platform, on what a power cut left, and use its database in this process."""
    with ExitStack() as closing:
        if is_whole_platform:
            closing.callback(platform_process.running_platform(folder, "--no-demo").end)
        else:
            closing.enter_context(database.running(folder, options={"fsync": "off"}))
        closing.enter_context(servers.looking_into(folder))
        closing.enter_context(servers.publish_to("memory://"))
        yield


def has_ended(job: Job) -> bool:
    return not Job.objects.get(pk=job.pk).is_unfinished


def resume(job: Job) -> None:
    """Run the rest of a job, as a worker does after its lease."""
    Job.objects.filter(pk=job.pk, state=JobState.RUNNING).update(lease_ends_at=timezone.now())
    if not has_ended(job):
        current_app.tasks[job.kind].run(job.pk)
