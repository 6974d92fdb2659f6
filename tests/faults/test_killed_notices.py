"""kill -9 of the worker that sends notices: every notice arrives, and at most one per kill arrives twice."""

import datetime as dt
from functools import partial
from pathlib import Path

import pytest
from django.utils import timezone

from events import audit_log
from jobs import control
from notices import outbox, subscriptions
from notices.models import Notice, NoticeDelivery, NoticeState
from tests import factories, servers
from tests.notices import receivers

NOTICES, KILLS = 40, 3


@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("real_connections")
def test_killed_worker_loses_no_notice_and_repeats_at_most_the_one_it_was_sending(broker: str, tmp_path: Path) -> None:
    environment = {**servers.process_environment(tmp_path, broker=broker), "STEPMARK_OUTBOUND_HOSTS": "127.0.0.1"}
    start = partial(servers.start_worker, env=environment, log=tmp_path / "worker.log", concurrency=2)
    project, lead = factories.make_project("sums"), factories.make_user("lead")
    with servers.publish_to(broker), receivers.running_receiver() as receiver:
        receiver.delay = 0.05
        subscriptions.create_webhook(
            project=project, address=receiver.address, kinds=["project.budget_warned"], by=lead, now=factories.NOW
        )
        entry = audit_log.EventEntry("project.budget_warned", project.pk, f"project:{project.pk}")
        audit_log.log_events([entry] * NOTICES, by=None, now=timezone.now())
        for kill in range(1, KILLS + 1):
            worker = start()
            try:
                pass_time()
                servers.wait_until(partial(has_received, receiver, kill * NOTICES // (KILLS + 1)), what="some notices")
            finally:
                worker.kill()
        worker = start()
        try:
            pass_time()
            servers.wait_until(all_are_sent, what="all notices")
        finally:
            worker.kill()
    received = [notice["id"] for notice in receiver.notices]
    assert set(received) == set(Notice.objects.values_list("pk", flat=True))
    assert NOTICES <= len(received) <= NOTICES + KILLS


def pass_time() -> None:
    """Let the leases of a killed worker expire, and do what the schedule does."""
    NoticeDelivery.objects.filter(state=NoticeState.WAITING).update(next_attempt_at=timezone.now())
    control.sweep_jobs(now=timezone.now() + dt.timedelta(minutes=3))
    outbox.send_due(now=timezone.now())


def has_received(receiver: receivers.WebhookReceiver, number: int) -> bool:
    return len(receiver.requests) >= number


def all_are_sent() -> bool:
    return NoticeDelivery.objects.filter(state=NoticeState.SENT).count() == NOTICES
