"""A worker is killed at any moment of a run: it resumes, and no stored vote or rollout is asked for again."""

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
from tests import factories, servers
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, Scripted, running_chat

pytestmark = [
    pytest.mark.fault,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("real_connections"),
]

N_CONCURRENT, N_KILLS = 6, 4
JUDGED, N_VOTES = 60, 3
ROLLED_OUT, N_ROLLOUTS = 12, 4 * 4  # four rollouts from the problem and after three steps; the last one is checked


def script(request: dict[str, Any], attempt: int) -> Scripted:
    dice = random.Random(request["seed"] * 10 + attempt)
    if dice.random() < 0.05:
        return Scripted(status=500)
    answer = dice.choice([10, 11]) if "prompt" in request else dice.choice([-1, 0, 1, 2])
    return Scripted(rf"\boxed{{{answer}}}", delay=0.05)


@pytest.mark.parametrize("kind", ["judge", "monte_carlo"])
def test_run_survives_kills_without_paying_twice(kind: str, broker: str, tmp_path: Path) -> None:
    n_traces, n_votes = (JUDGED, N_VOTES) if kind == "judge" else (ROLLED_OUT, N_ROLLOUTS)
    environment = servers.process_environment(tmp_path, broker=broker)
    environment["STEPMARK_OUTBOUND_HOSTS"] = "127.0.0.1"
    start = partial(servers.start_worker, env=environment, log=tmp_path / "worker.log", concurrency=2)
    with servers.publish_to(broker), running_chat(chat := ChatServer(script)) as address:
        run = start_run(kind, address)
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
    assert (run.n_judged, run.n_labeled, run.n_votes) == (n_traces, n_traces, n_traces * n_votes)
    assert JudgeVote.objects.count() == n_traces * n_votes
    assert JudgedTrace.objects.count() == Submission.objects.count() == n_traces
    # Only requests that were under way at a kill are asked for twice.
    paid_twice = sum(n - 1 for n in chat.answered.values())
    assert paid_twice <= N_KILLS * (N_CONCURRENT + N_CONCURRENT // 4)
    assert all(n <= N_KILLS + 1 for n in chat.answered.values())


def start_run(kind: str, address: str) -> JudgeRun:
    if kind == "judge":
        project = judged_project.make_project(JUDGED)
        settings = {"n_votes": N_VOTES, "temperature": 1.0, "n_concurrent": N_CONCURRENT}
        judge = judged_project.make_judge(project, address, **settings)
    else:
        project = factories.make_project()
        judged_project.add_sums(project, ROLLED_OUT, wrong_at=2)
        options = {"measures_progress": True}
        judge = judged_project.make_rollout_rater(project, address, options, n_concurrent=N_CONCURRENT)
    return runs.start_run(judge=judge, by=None, now=timezone.now())


def has_votes(run: JudgeRun, n: int) -> bool:
    return JudgeVote.objects.filter(run=run).count() >= n


def free_job(run: JudgeRun) -> None:
    """Requeue the job of the killed worker, as the sweep does when its lease has ended."""
    Job.objects.filter(subject=run.subject, state="running").update(lease_ends_at=timezone.now())
    control.sweep_jobs(now=timezone.now())


def is_done(run: JudgeRun) -> bool:
    control.sweep_jobs(now=timezone.now())
    return JudgeRun.objects.get(pk=run.pk).state == "done"
