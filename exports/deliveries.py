"""Delivers snapshots to the places that are set up for it, behind the scenes. Alone changes Delivery.

A job a delivery. It keeps how many files lie there: broken off or refused, it goes on with the next one.
"""

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from django.db import transaction

from accounts.models import User
from events import log
from exports import destinations, sending
from exports.models import Delivery, Snapshot
from jobs import work
from jobs.models import Job, JobState
from jobs.runner import Chunk, Progress

DELIVER = "exports.deliver"
_SIGN_OF_LIFE = 3.0  # seconds, while a large file is on its way


@dataclass(frozen=True)
class Standing:
    """How far a delivery is, from its job."""

    delivery: Delivery
    state: str
    done: int
    total: int | None
    failure: str

    @property
    def is_at_work(self) -> bool:
        return self.state in (JobState.QUEUED, JobState.RUNNING)


def ask(*, snapshot: Snapshot, destination: str, by: User | None, now: dt.datetime) -> Delivery:
    """Once for each destination: asked again, what failed is tried again, what is there or on its way stays."""
    destinations.check([destination])
    address = destinations.address_of(destination, project=snapshot.project.slug, snapshot=snapshot.name)
    with transaction.atomic():
        made, is_new = Delivery.objects.get_or_create(
            snapshot=snapshot, destination=destination, defaults={"address": address, "asked_at": now, "asked_by": by}
        )
        if is_new:
            _say("snapshot.delivery_asked", made, by=by, now=now)
            work.ask(kind=DELIVER, subject=subject(made), arguments={"delivery": made.pk}, by=by, now=now)
        elif (job := _job(made)) and job.state in (JobState.FAILED, JobState.CANCELLED):
            work.retry(job=job, by=by, now=now)
    return made


def subject(delivery: Delivery) -> str:
    return f"delivery:{delivery.pk}"


def of(snapshot: Snapshot) -> list[Standing]:
    """Every delivery of a snapshot, in the order in which they were asked for."""
    return [_standing(each) for each in snapshot.deliveries.order_by("pk")]


def _standing(delivery: Delivery) -> Standing:
    job = _job(delivery)
    if job is None or delivery.delivered_at is not None:
        return Standing(delivery, JobState.DONE, 0, None, "")
    return Standing(delivery, job.state, job.done, job.total, job.failure)


def _job(delivery: Delivery) -> Job | None:
    return Job.objects.filter(kind=DELIVER, subject=subject(delivery)).order_by("-pk").first()


def deliver(delivery: Delivery, *, sent: int) -> Iterator[Progress | Chunk]:
    """File by file, going on behind those that are there. While one is on its way, signs of life."""
    if delivery.delivered_at is not None:
        return
    total = len(sending.names(delivery.snapshot))
    yield Progress(sent, total)
    files = sending.send(delivery.snapshot, sending.place_of(delivery.address), after=sent)
    with ThreadPoolExecutor(1) as sender:
        while True:
            name = sender.submit(next, files, None)
            yield from _until_there(name, sent, total)
            if name.result() is None:
                break
            sent += 1
            yield Progress(sent, total, {"sent": sent})
    yield partial(_is_delivered, delivery, total)


def _until_there(name: "Future[str | None]", sent: int, total: int) -> Iterator[Progress]:
    while not wait([name], timeout=_SIGN_OF_LIFE).done:
        yield Progress(sent, total)


def _is_delivered(delivery: Delivery, total: int, now: dt.datetime) -> Progress:
    if Delivery.objects.filter(pk=delivery.pk, delivered_at=None).update(delivered_at=now):
        _say("snapshot.delivered", delivery, by=delivery.asked_by, now=now)
    return Progress(total, total)


def _say(what: str, delivery: Delivery, *, by: User | None, now: dt.datetime) -> None:
    of = delivery.snapshot
    detail = {"destination": delivery.destination, "address": delivery.address}
    log.append(what=what, by=by, now=now, project=of.project_id, subject=f"snapshot:{of.pk}", detail=detail)
