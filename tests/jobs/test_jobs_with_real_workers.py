"""Jobs with a broker and worker processes: a killed job resumes, and no chunk runs twice."""

import datetime as dt
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import redis
from django.utils import timezone

from events.models import Event
from jobs import control, runner
from jobs.models import Job
from tests import concurrency, servers
from tests.jobs import tasks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_connections")]


def request(to: int, seconds: float = 0.0) -> Job:
    arguments = {"to": to, "seconds": seconds}
    return control.request_job(kind="tests.count", arguments=arguments, by=None, now=timezone.now())


def list_events() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("what", flat=True))


def matches(job: Job, **fields: object) -> Callable[[], bool]:
    return lambda: Job.objects.filter(pk=job.pk, **fields).exists()


def sweep_until(condition: Callable[[], bool]) -> Callable[[], bool]:
    def sweep() -> bool:
        control.sweep_jobs(now=timezone.now(), patience=dt.timedelta(seconds=1))
        return condition()

    return sweep


@pytest.mark.fault
def test_job_resumes_after_kill_9_of_its_worker(broker: str, tmp_path: Path) -> None:
    environment = servers.process_environment(tmp_path, broker=broker)
    start = partial(
        servers.start_worker, env=environment, log=tmp_path / "worker.log", include="tests.jobs.tasks", concurrency=2
    )
    with servers.publish_to(broker):
        first, second = start(), None
        try:
            job = request(to=100, seconds=0.1)  # long enough to be killed in the middle on a busy machine
            servers.wait_until(matches(job, done__gte=3), what="the third chunk")
            first.kill()
            left = Job.objects.get(pk=job.pk)
            assert (left.state, left.attempt) == ("running", 1)
            Job.objects.filter(pk=job.pk).update(arguments={"to": 100})
            second = start()
            servers.wait_until(sweep_until(matches(job, state="done")), what="the end of the job")
        finally:
            first.kill()
            if second:
                second.kill()
    after = Job.objects.get(pk=job.pk)
    assert (after.attempt, after.done_before) == (2, left.done)
    assert list_events() == [f"chunk {n}" for n in range(1, 101)]


def test_one_of_several_concurrent_runners_wins() -> None:
    job = control.request_job(kind="tests.count", arguments={"to": 5}, by=None, now=timezone.now())
    states = concurrency.run_at_once(*[partial(runner.run_job, job.pk, tasks.chunks) for _ in range(4)])
    assert sorted(map(str, states)) == ["None", "None", "None", "done"]
    assert list_events() == [f"chunk {n}" for n in range(1, 6)]
    assert Job.objects.get(pk=job.pk).attempt == 1


def test_request_succeeds_while_the_broker_is_down() -> None:
    with servers.short_folder() as folder:
        path, log = folder / "valkey.sock", folder / "valkey.log"
        with servers.publish_to(f"unix://{path}"):
            job = request(to=1)
            assert Job.objects.get(pk=job.pk).published_at is None
            assert control.sweep_jobs(now=timezone.now()) == 0
            with servers.running_valkey(path, log):
                assert control.sweep_jobs(now=timezone.now()) == 1
                assert control.sweep_jobs(now=timezone.now()) == 0
                with redis.Redis(unix_socket_path=str(path)) as client:
                    assert client.llen(control.QUEUE) == 1
    assert Job.objects.get(pk=job.pk).published_at is not None
