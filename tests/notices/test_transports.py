"""The documented receiver checks what the platform sends."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from django.utils import timezone

import outbound
from notices import kinds, outbox, subscriptions, transports
from notices.models import NoticeDelivery, Webhook
from supervisor import paths
from tests import factories, servers
from tests.conventions.rule import ROOT

pytestmark = pytest.mark.django_db


@contextmanager
def running_documented_receiver(port: int, secret: str) -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, str(ROOT / "docs" / "webhook_receiver.py"), str(port)]
    environment, quiet = {**os.environ, "SECRET": secret}, subprocess.DEVNULL
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:
        try:
            servers.wait_until(lambda: _answers(port), what="the receiver")
            yield process
        finally:
            process.kill()


def _answers(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_documented_receiver_accepts_genuine_notices_once_and_no_others() -> None:
    project, lead, port = factories.make_project(), factories.make_user(), paths.find_free_port(0)
    webhook, secret = subscriptions.create_webhook(
        project=project, address=f"http://127.0.0.1:{port}/", kinds=[kinds.TEST_KIND], by=lead, now=factories.NOW
    )
    delivery = outbox.send_test(webhook=webhook, by=lead, now=timezone.now())
    with running_documented_receiver(port, secret) as receiver:
        for _ in range(2):
            transports.send_notice(delivery, now=timezone.now())
        with pytest.raises(transports.NotDelivered):
            transports.send_notice(delivery, now=factories.NOW)  # an old timestamp
        body = transports.write_body(delivery.notice)
        for key, sent in ((secret + "x", body), (secret, body.replace(b"test", b"fake"))):
            headers = outbound.sign_request(body, key, at=int(time.time()))
            assert outbound.post(webhook.address, sent, headers, timeout=5, max_bytes=10).status == 401
        receiver.kill()
        assert receiver.stdout is not None
        assert receiver.stdout.read().splitlines() == ["webhook.test {}"]


def test_secrets_differ_and_are_not_stored() -> None:
    project, lead = factories.make_project(), factories.make_user()
    made = [
        subscriptions.create_webhook(
            project=project, address="http://127.0.0.1:9/", kinds=["import.done"], by=lead, now=factories.NOW
        )
        for _ in range(2)
    ]
    assert made[0][1] != made[1][1]
    stored = str([list(model.objects.values()) for model in (Webhook, NoticeDelivery)])
    assert not any(secret in stored or secret.removeprefix("whsec_") in stored for _row, secret in made)
