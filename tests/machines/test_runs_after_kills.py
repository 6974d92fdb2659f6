"""A worker is killed at any moment of a run: it resumes, and no stored vote is asked for again."""

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jobs import control
from jobs.models import Job
from labeling.models import Submission
from machines import runs
from machines.models import JudgedTrace, JudgeRun, JudgeVote
from tests import servers
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, Scripted, running_chat

pytestmark = [
    pytest.mark.fault,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("real_connections"),
]

N_TRACES, N_VOTES, N_CONCURRENT, N_KILLS = 60, 3, 6, 4


def script(request: dict[str, Any], attempt: int) -> Scripted:
    dice = random.Random(request["seed"] * 10 + attempt)
    if dice.random() < 0.05:
        return Scripted(status=500)
    return Scripted(rf"\boxed{{{dice.choice([-1, 0, 1, 2])}}}", delay=0.05)


def test_run_survives_kills_without_paying_twice(broker: str, tmp_path: Path) -> None:
    project = judged_project.make_project(N_TRACES)
    environment = servers.process_environment(tmp_path, broker=broker)
    environment["STEPMARK_OUTBOUND_HOSTS"] = "127.0.0.1"
    start = partial(servers.start_worker, env=environment, log=tmp_path / "worker.log", concurrency=2)
    with servers.publish_to(broker), running_chat(chat := ChatServer(script)) as address:
        settings = {"n_votes": N_VOTES, "temperature": 1.0, "n_concurrent": N_CONCURRENT}
        judge = judged_project.make_judge(project, address, **settings)
        run = runs.start_run(judge=judge, by=None, now=timezone.now())
        for kill in range(N_KILLS):
            worker = start()
            try:
                servers.wait_until(partial(has_votes, run, (kill + 1) * 20), what="further votes")
            finally:
                worker.kill()
            free_job(run)
        worker = start()
        try:
            servers.wait_until(partial(is_done, run), within=120, what="the end of the run")
        finally:
            worker.kill()
    run.refresh_from_db()
    assert (run.n_judged, run.n_labeled, run.n_votes) == (N_TRACES, N_TRACES, N_TRACES * N_VOTES)
    assert JudgeVote.objects.count() == N_TRACES * N_VOTES
    assert JudgedTrace.objects.count() == Submission.objects.count() == N_TRACES
    # Only requests that were under way at a kill are asked for twice.
    paid_twice = sum(n - 1 for n in chat.answered.values())
    assert paid_twice <= N_KILLS * (N_CONCURRENT + N_CONCURRENT // 4)
    assert all(n <= N_KILLS + 1 for n in chat.answered.values())


def has_votes(run: JudgeRun, n: int) -> bool:
    return JudgeVote.objects.filter(run=run).count() >= n


def free_job(run: JudgeRun) -> None:
    """Requeue the job of the killed worker, as the sweep does when its lease has ended."""
    Job.objects.filter(subject=run.subject, state="running").update(lease_ends_at=timezone.now())
    control.sweep_jobs(now=timezone.now())


def is_done(run: JudgeRun) -> bool:
    control.sweep_jobs(now=timezone.now())
    return JudgeRun.objects.get(pk=run.pk).state == "done"
