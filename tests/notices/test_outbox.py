"""Each event becomes one notice, and notices are delivered, retried and finally given up."""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.urls import reverse

from accounts.models import User
from events import audit_log
from events.models import Event, QueuedEvent
from jobs import runner
from jobs.models import Job
from labeling import assignments
from labeling.models import Project, Rater
from notices import outbox, subscriptions
from notices.kinds import NOTICE_KINDS
from notices.models import Notice, NoticeDelivery, NoticeState, Webhook
from people import members
from people.models import Role
from tests import concurrency, factories
from tests.labeling.quality import submitted_work
from tests.notices import receivers

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def receiver() -> Iterator[receivers.WebhookReceiver]:
    with receivers.running_receiver() as running:
        yield running


@pytest.fixture
def mail_server(settings: Any) -> Iterator[receivers.MailServer]:
    with receivers.running_mail_server() as running:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", running.port
        settings.EMAIL_USE_TLS = False
        yield running


@pytest.fixture
def project() -> Project:
    return factories.make_project("sums", name="Sums\nand more")


@pytest.fixture
def lead(project: Project) -> User:
    user = factories.make_user("lead", email="lead@example.org")
    members.add_member(project=project, user=user, role=Role.LEAD, now=NOW)
    return user


def make_webhook(project: Project, lead: User, address: str, *kinds: str) -> Webhook:
    chosen = kinds or tuple(NOTICE_KINDS)
    return subscriptions.create_webhook(project=project, address=address, kinds=chosen, by=lead, now=NOW)[0]


def log_warning(project: Project) -> None:
    detail = {"amount": "100", "spent": "80.00"}
    subject = f"project:{project.pk}"
    audit_log.log_event(
        what="project.budget_warned", by=None, now=NOW, project=project.pk, subject=subject, detail=detail
    )


def send(now: dt.datetime) -> None:
    """Do what the schedule and the worker do."""
    outbox.send_due(now=now)
    for job in Job.objects.filter(kind=outbox.KIND).unfinished():
        runner.run_job(job.pk, outbox.chunks, clock=lambda: now)


def states() -> list[tuple[str, int]]:
    return list(NoticeDelivery.objects.order_by("pk").values_list("state", "attempts"))


def test_event_is_sent_once_to_each_webhook_that_wants_it(
    project: Project, lead: User, receiver: receivers.WebhookReceiver
) -> None:
    make_webhook(project, lead, receiver.address)
    make_webhook(project, lead, receiver.address, "import.done")
    make_webhook(factories.make_project(), lead, receiver.address)
    log_warning(project)
    for minutes in range(3):
        send(NOW + dt.timedelta(minutes=minutes))
    assert states() == [(NoticeState.SENT, 1)]
    assert receiver.notices == [
        {
            "id": Notice.objects.get().pk,
            "type": "project.budget_warned",
            "created_at": NOW.isoformat(),
            "project": {"slug": "sums", "name": project.name},
            "url": "http://127.0.0.1:8000/projects/sums/pay/",
            "data": {
                "amount": "100",
                "spent": "80.00",
                "currency": "EUR",
                "amount_shown": "€100.00",
                "spent_shown": "€80.00",
            },
        }
    ]


def test_events_that_nobody_wants_and_events_of_a_rolled_back_transaction_leave_nothing(
    project: Project, lead: User, receiver: receivers.WebhookReceiver
) -> None:
    log_warning(project)
    send(NOW)
    make_webhook(project, lead, receiver.address)
    with transaction.atomic():
        log_warning(project)
        transaction.set_rollback(True)
    audit_log.log_event(what="gold.made", by=None, now=NOW, project=project.pk)
    send(NOW)
    assert not QueuedEvent.objects.exists()
    assert not Notice.objects.exists()
    assert receiver.requests == []


def test_failed_delivery_is_repeated_with_the_same_body_until_it_is_given_up(
    project: Project, lead: User, receiver: receivers.WebhookReceiver
) -> None:
    make_webhook(project, lead, receiver.address)
    receiver.statuses = [500, 302, 404] + [503] * 5
    log_warning(project)
    now = NOW
    for attempt in range(1, outbox.MAX_ATTEMPTS + 1):
        send(now)
        assert NoticeDelivery.objects.get().attempts == attempt
        send(now)  # too early
        now += outbox.DELAYS[attempt - 1] if attempt < outbox.MAX_ATTEMPTS else dt.timedelta()
    delivery = NoticeDelivery.objects.get()
    assert (delivery.state, "503" in delivery.problem) == (NoticeState.FAILED, True)
    assert len({body for _headers, body in receiver.requests}) == 1
    assert len({headers["Idempotency-Key"] for headers, _body in receiver.requests}) == 1
    assert len({headers["X-Stepmark-Signature"] for headers, _body in receiver.requests}) == outbox.MAX_ATTEMPTS
    outbox.send_again(delivery=delivery, by=lead, now=now)
    send(now)
    assert states() == [(NoticeState.SENT, 1)]


def test_unreachable_webhook_delays_no_other(project: Project, lead: User, receiver: receivers.WebhookReceiver) -> None:
    make_webhook(project, lead, "http://127.0.0.1:1/")
    make_webhook(project, lead, receiver.address)
    for _ in range(3):
        log_warning(project)
    send(NOW)
    assert len(receiver.requests) == 3
    assert sorted(states()) == [(NoticeState.SENT, 1)] * 3 + [(NoticeState.WAITING, 0)] * 2 + [(NoticeState.WAITING, 1)]


def test_webhook_to_a_forbidden_address_is_not_called(project: Project, lead: User, settings: Any) -> None:
    """The name was public when the webhook was made."""
    make_webhook(project, lead, "http://127.0.0.1:1/")
    settings.OUTBOUND_HOSTS = []
    log_warning(project)
    send(NOW)
    assert "STEPMARK_OUTBOUND_HOSTS" in NoticeDelivery.objects.get().problem


def test_waiting_notices_of_a_deleted_webhook_are_dropped(
    project: Project, lead: User, receiver: receivers.WebhookReceiver
) -> None:
    webhook = make_webhook(project, lead, receiver.address)
    log_warning(project)
    outbox.make_notices(now=NOW)
    subscriptions.delete_webhook(webhook=webhook, by=lead, now=NOW)
    send(NOW)
    assert (states(), receiver.requests) == ([(NoticeState.FAILED, 1)], [])


def test_interrupted_attempt_is_repeated_with_the_same_id(
    project: Project, lead: User, receiver: receivers.WebhookReceiver
) -> None:
    """A worker that is killed while it sends leaves a claimed delivery."""
    make_webhook(project, lead, receiver.address)
    log_warning(project)
    outbox.make_notices(now=NOW)
    steps = outbox.chunks(Job(kind=outbox.KIND))
    next(steps)(NOW)
    next(steps)  # the request is sent, and its outcome never recorded
    send(NOW)
    assert states() == [(NoticeState.WAITING, 1)]
    send(NOW + outbox.ATTEMPT_LIMIT)
    assert states() == [(NoticeState.SENT, 2)]
    assert len({notice["id"] for notice in receiver.notices}) == 1


def test_mail_goes_to_leads_who_chose_it(project: Project, lead: User, mail_server: receivers.MailServer) -> None:
    silent, demoted = (factories.make_user(name, email=f"{name}@example.org") for name in ("silent", "demoted"))
    for role, user in ((Role.LEAD, silent), (Role.ANNOTATOR, demoted)):
        members.add_member(project=project, user=user, role=role, now=NOW)
    for user in (lead, demoted):
        membership = members.get_membership(project=project, user=user)
        subscriptions.choose_mail(membership=membership, kinds=["project.budget_warned"], now=NOW)
    log_warning(project)
    audit_log.log_event(what="import.done", by=None, now=NOW, project=project.pk, subject="source:1")
    mail_server.refusals = 1
    send(NOW)
    assert states() == [(NoticeState.WAITING, 1)]
    send(NOW + outbox.DELAYS[0])
    (mail,) = mail_server.mails
    assert (mail["To"], mail["Subject"].startswith("[Sums and more] ")) == ("lead@example.org", True)
    assert mail["Message-ID"].startswith(f"<notice-{NoticeDelivery.objects.get().pk}@")
    assert "http://127.0.0.1:8000/projects/sums/pay/" in mail.get_content()


def test_lead_who_left_gets_no_waiting_mail(project: Project, lead: User, mail_server: receivers.MailServer) -> None:
    members.add_member(project=project, user=factories.make_user(), role=Role.OWNER, now=NOW)
    membership = members.get_membership(project=project, user=lead)
    subscriptions.choose_mail(membership=membership, kinds=list(NOTICE_KINDS), now=NOW)
    log_warning(project)
    outbox.make_notices(now=NOW)
    members.leave_project(membership=membership, now=NOW)
    send(NOW)
    assert (states(), mail_server.mails) == ([(NoticeState.FAILED, 1)], [])


def test_correction_is_mailed_to_the_annotator_with_the_way_to_their_home_page(
    project: Project, lead: User, mail_server: receivers.MailServer
) -> None:
    ann = factories.make_user("ann", email="ann@example.org")
    membership = members.add_member(project=project, user=ann, role=Role.ANNOTATOR, now=NOW)
    made = submitted_work.submit_trace(Rater.objects.get(user=ann), factories.make_trace(project), [1, 1, 1])
    assignments.request_correction(assignment_id=made.pk, note="Look at step 2.", by=lead, now=NOW)
    send(NOW)
    (mail,) = mail_server.mails
    assert mail["To"] == "ann@example.org"
    assert mail.get_content().split()[-1] == "http://127.0.0.1:8000" + reverse("annotate:home")
    assert "/projects/" not in mail.get_content()
    other = submitted_work.submit_trace(Rater.objects.get(user=ann), factories.make_trace(project), [1, 1, 1])
    assignments.request_correction(assignment_id=other.pk, note="And here.", by=lead, now=NOW)
    outbox.make_notices(now=NOW)
    members.leave_project(membership=membership, now=NOW)
    send(NOW)
    assert len(mail_server.mails) == 1


def test_nothing_is_mailed_without_a_mail_server(project: Project, lead: User) -> None:
    membership = members.get_membership(project=project, user=lead)
    subscriptions.choose_mail(membership=membership, kinds=list(NOTICE_KINDS), now=NOW)
    log_warning(project)
    send(NOW)
    assert not Notice.objects.exists()


def test_old_notices_are_deleted_and_waiting_ones_stay(
    project: Project, lead: User, receiver: receivers.WebhookReceiver
) -> None:
    make_webhook(project, lead, receiver.address)
    log_warning(project)
    send(NOW)
    log_warning(project)
    outbox.make_notices(now=NOW)
    outbox.delete_old_notices(now=NOW + outbox.RETENTION)
    assert Notice.objects.count() == 2
    outbox.delete_old_notices(now=NOW + outbox.RETENTION + dt.timedelta(seconds=1))
    assert states() == [(NoticeState.WAITING, 0)]
    assert Event.objects.filter(what="project.budget_warned").count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("real_connections")
@pytest.mark.fault
def test_concurrent_workers_send_each_notice_once(receiver: receivers.WebhookReceiver) -> None:
    project, lead = factories.make_project("sums"), factories.make_user("lead")
    make_webhook(project, lead, receiver.address)
    for _ in range(12):
        log_warning(project)
    concurrency.run_at_once(*[partial(outbox.make_notices, now=NOW) for _ in range(4)])
    jobs = [Job.objects.create(kind=outbox.KIND, asked_at=NOW) for _ in range(3)]
    concurrency.run_at_once(*[partial(runner.run_job, job.pk, outbox.chunks) for job in jobs])
    assert sorted(notice["id"] for notice in receiver.notices) == sorted(Notice.objects.values_list("pk", flat=True))
    assert states() == [(NoticeState.SENT, 1)] * 12
