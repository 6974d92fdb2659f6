"""The outbox: notices are made from queued events, and delivered by a job. Only this module writes notices.

`events.audit_log` queues an event in the transaction that logs it. One transaction replaces the queue row by the rows
of the notice, so no event is lost or used twice. A delivery is claimed before it is sent: the claim counts the attempt
and sets the time of the next one. If a worker is killed while it sends, the delivery is sent again after that time,
with the same id: the receiver may have got it already. This is the only case in which a notice is sent twice.
"""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events.models import QueuedEvent
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Project
from notices import kinds, subscriptions, transports
from notices.models import Notice, NoticeDelivery, NoticeState, Webhook
from notices.transports import NotDelivered

KIND = "notices.send"
EVENTS_AT_ONCE = 200
# The wait after each attempt; the last attempt has none. Together two days.
DELAYS = tuple(dt.timedelta(minutes=minutes) for minutes in (2, 5, 30, 120, 360, 720, 1440))
MAX_ATTEMPTS = len(DELAYS) + 1
ATTEMPT_LIMIT = dt.timedelta(minutes=2)  # an attempt that takes longer was lost with its worker; also the job's lease
RETENTION = dt.timedelta(days=30)


class ClaimedDelivery(NamedTuple):
    delivery: NoticeDelivery
    at: dt.datetime  # when it was claimed; the signature has this time


# Whether `send_due` has work.
HAS_DUE_NOTICES = """EXISTS (SELECT FROM events_queuedevent)
  OR EXISTS (SELECT FROM notices_noticedelivery WHERE state = 'waiting' AND next_attempt_at <= %(now)s)"""


def send_due(*, now: dt.datetime) -> None:
    """Make the notices of queued events, and start the job that sends them unless one is at work."""
    while make_notices(now=now):
        pass
    if _due_deliveries(now).exists():
        request_sending(by=None, now=now)


def make_notices(*, now: dt.datetime) -> int:
    """Turn queued events into notices, and return how many events there were. Concurrent calls share the work."""
    with transaction.atomic():
        rows = QueuedEvent.objects.select_for_update(skip_locked=True, of=("self",)).select_related("event")
        queued = list(rows.order_by("event")[:EVENTS_AT_ONCE])
        found = {row.pk: kinds.find_project_id(row.event) for row in queued}
        projects = Project.objects.in_bulk([project for project in found.values() if project is not None])
        for row in queued:
            if project := projects.get(found[row.pk] or 0):
                content = kinds.describe_event(row.event, project)
                _make_deliveries(
                    Notice(
                        event=row.event, project=project, kind=row.event.what, happened_at=row.event.at, content=content
                    ),
                    now,
                )
        QueuedEvent.objects.filter(pk__in=[row.pk for row in queued]).delete()
    return len(queued)


def _make_deliveries(notice: Notice, now: dt.datetime) -> None:
    """Store the notice if there is a receiver."""
    webhooks = [row for row in subscriptions.list_webhooks(notice.project) if notice.kind in row.kinds]
    members = subscriptions.list_receivers_of(notice) if subscriptions.can_send_mail() else []
    if webhooks or members:
        notice.save()
    deliveries = [NoticeDelivery(notice=notice, webhook=webhook, next_attempt_at=now) for webhook in webhooks]
    deliveries += [NoticeDelivery(notice=notice, membership=member, next_attempt_at=now) for member in members]
    NoticeDelivery.objects.bulk_create(deliveries)


def send_test(*, webhook: Webhook, by: User, now: dt.datetime) -> NoticeDelivery:
    """Queue a test notice to one webhook."""
    with transaction.atomic():
        content = kinds.describe_test(webhook.project, now.isoformat())
        notice = Notice.objects.create(project=webhook.project, kind=kinds.TEST_KIND, happened_at=now, content=content)
        delivery = NoticeDelivery.objects.create(notice=notice, webhook=webhook, next_attempt_at=now)
        request_sending(by=by, now=now)
    return delivery


def send_again(*, delivery: NoticeDelivery, by: User, now: dt.datetime) -> None:
    """Start the attempts of a failed delivery over."""
    with transaction.atomic():
        failed = NoticeDelivery.objects.filter(pk=delivery.pk, state=NoticeState.FAILED)
        if failed.update(state=NoticeState.WAITING, attempts=0, next_attempt_at=now, ended_at=None):
            request_sending(by=by, now=now)


def request_sending(*, by: User | None, now: dt.datetime) -> None:
    if not Job.objects.filter(kind=KIND).unfinished().exists():
        control.request_job(kind=KIND, by=by, now=now)


def chunks(job: Job) -> Iterator[Chunk]:
    """Send every delivery that is due. After a failure, the receiver's other deliveries wait for the next job."""
    unreachable: set[int] = set()
    while True:
        claimed: list[ClaimedDelivery] = []
        yield partial(_claim_delivery, job, claimed, frozenset(unreachable))
        if not claimed:
            return
        delivery, at = claimed[0]
        problem = _attempt(delivery, at)
        if problem and not problem.is_final and delivery.webhook_id:
            unreachable.add(delivery.webhook_id)
        yield partial(_record_attempt, job, delivery, problem)


def _claim_delivery(
    job: Job, claimed: list[ClaimedDelivery], unreachable: frozenset[int], now: dt.datetime
) -> JobProgress:
    """Lock one due delivery, count the attempt, and set the time of the next one."""
    due = _due_deliveries(now).filter(Q(webhook=None) | ~Q(webhook__in=unreachable))
    rows = due.select_for_update(skip_locked=True, of=("self",)).order_by("next_attempt_at", "pk")
    row = rows.select_related("notice", "webhook", "membership__user", "membership__project").first()
    if row is not None:
        row.attempts += 1
        row.next_attempt_at = now + max(_delay_after(row.attempts), ATTEMPT_LIMIT)
        row.save(update_fields=["attempts", "next_attempt_at"])
        claimed.append(ClaimedDelivery(row, now))
    return JobProgress(job.done)


def _delay_after(attempts: int) -> dt.timedelta:
    return DELAYS[attempts - 1] if attempts <= len(DELAYS) else dt.timedelta()


def _attempt(delivery: NoticeDelivery, at: dt.datetime) -> NotDelivered | None:
    """Send outside of any transaction. Return the problem, or None."""
    if delivery.attempts > MAX_ATTEMPTS:  # the worker was killed in the last attempt
        return NotDelivered(_("The last attempt was interrupted."), is_final=True)
    try:
        transports.send_notice(delivery, now=at)
    except NotDelivered as problem:
        return problem
    return None


def _record_attempt(job: Job, delivery: NoticeDelivery, problem: NotDelivered | None, now: dt.datetime) -> JobProgress:
    row = NoticeDelivery.objects.filter(pk=delivery.pk, state=NoticeState.WAITING, attempts=delivery.attempts)
    if problem is None:
        row.update(state=NoticeState.SENT, problem="", next_attempt_at=None, ended_at=now)
    elif problem.is_final or delivery.attempts >= MAX_ATTEMPTS:
        row.update(state=NoticeState.FAILED, problem=str(problem)[:300], next_attempt_at=None, ended_at=now)
    else:
        row.update(problem=str(problem)[:300])
    return JobProgress(job.done + 1)


def _due_deliveries(now: dt.datetime) -> QuerySet[NoticeDelivery]:
    return NoticeDelivery.objects.filter(state=NoticeState.WAITING, next_attempt_at__lte=now)


def delete_old_notices(*, now: dt.datetime) -> int:
    """Delete notices and their deliveries that ended a month ago."""
    old = Notice.objects.filter(happened_at__lt=now - RETENTION).exclude(deliveries__state=NoticeState.WAITING)
    return old.delete()[0]
