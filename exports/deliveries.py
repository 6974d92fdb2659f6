"""Deliver snapshots to configured destinations in the background. Only this module writes `Delivery`.

Each delivery is one job. Its checkpoint is the number of uploaded files, so a retry continues with the next one.
"""

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from django.db import transaction

from accounts.models import User
from events import audit_log
from exports import destinations, snapshots
from exports.destinations import DeliveryTarget
from exports.models import Delivery, Snapshot
from jobs import control
from jobs.models import Job, JobState
from jobs.runner import Chunk, JobProgress

DELIVER = "exports.deliver"
MANIFEST_NAME = "manifest.json"
_HEARTBEAT_SECONDS = 3.0  # between heartbeats while a large file is uploaded


@dataclass(frozen=True)
class DeliveryStatus:
    """The progress of a delivery, from its job."""

    delivery: Delivery
    state: str
    done: int
    total: int | None
    failure: str

    @property
    def is_at_work(self) -> bool:
        return self.state in (JobState.QUEUED, JobState.RUNNING)


def request_delivery(*, snapshot: Snapshot, destination: str, by: User | None, now: dt.datetime) -> Delivery:
    """Start a delivery. A snapshot is delivered once per destination; asking again retries a failed delivery."""
    destinations.validate_destinations([destination])
    address = destinations.build_address(destination, project=snapshot.project.slug, snapshot=snapshot.name)
    with transaction.atomic():
        delivery, is_new = Delivery.objects.get_or_create(
            snapshot=snapshot, destination=destination, defaults={"address": address, "asked_at": now, "asked_by": by}
        )
        if is_new:
            _log_event("snapshot.delivery_asked", delivery, by=by, now=now)
            arguments = {"delivery": delivery.pk}
            control.request_job(kind=DELIVER, subject=job_subject(delivery), arguments=arguments, by=by, now=now)
        elif (job := _find_job(delivery)) and job.state in (JobState.FAILED, JobState.CANCELLED):
            control.retry_job(job=job, by=by, now=now)
    return delivery


def job_subject(delivery: Delivery) -> str:
    return f"delivery:{delivery.pk}"


def list_delivery_statuses(snapshot: Snapshot) -> list[DeliveryStatus]:
    """Return every delivery of a snapshot, oldest first."""
    return [_load_status(delivery) for delivery in snapshot.deliveries.order_by("pk")]


def _load_status(delivery: Delivery) -> DeliveryStatus:
    job = _find_job(delivery)
    if job is None or delivery.delivered_at is not None:
        return DeliveryStatus(delivery, JobState.DONE, 0, None, "")
    return DeliveryStatus(delivery, job.state, job.done, job.total, job.failure)


def _find_job(delivery: Delivery) -> Job | None:
    return Job.objects.filter(kind=DELIVER, subject=job_subject(delivery)).order_by("-pk").first()


def list_file_names(snapshot: Snapshot) -> list[str]:
    """Return the snapshot's files, the manifest last: once it is uploaded, the delivery is complete."""
    return sorted(snapshot.files.values_list("name", flat=True), key=lambda name: (name == MANIFEST_NAME, name))


def send_files(snapshot: Snapshot, target: DeliveryTarget, *, start: int = 0) -> Iterator[str]:
    """Upload the files from number `start`, and yield each name when it is done."""
    # Query here: the iterator may run in another thread, which has no database connection.
    names, folder = list_file_names(snapshot), snapshots.snapshot_folder(snapshot)
    return destinations.upload_files(names, folder, target, label=snapshot.name, start=start)


def run_delivery(delivery: Delivery, *, sent: int) -> Iterator[JobProgress | Chunk]:
    """Upload file by file after the first `sent`, with heartbeats while a file is being uploaded."""
    if delivery.delivered_at is not None:
        return
    total = len(list_file_names(delivery.snapshot))
    yield JobProgress(sent, total)
    files = send_files(delivery.snapshot, destinations.open_target(delivery.address), start=sent)
    with ThreadPoolExecutor(1) as uploader:
        while True:
            name = uploader.submit(next, files, None)
            yield from _wait_for_file(name, sent, total)
            if name.result() is None:
                break
            sent += 1
            yield JobProgress(sent, total, {"sent": sent})
    yield partial(_mark_delivered, delivery, total)


def _wait_for_file(name: "Future[str | None]", sent: int, total: int) -> Iterator[JobProgress]:
    while not wait([name], timeout=_HEARTBEAT_SECONDS).done:
        yield JobProgress(sent, total)


def _mark_delivered(delivery: Delivery, total: int, now: dt.datetime) -> JobProgress:
    if Delivery.objects.filter(pk=delivery.pk, delivered_at=None).update(delivered_at=now):
        _log_event("snapshot.delivered", delivery, by=delivery.asked_by, now=now)
    return JobProgress(total, total)


def _log_event(what: str, delivery: Delivery, *, by: User | None, now: dt.datetime) -> None:
    snapshot = delivery.snapshot
    detail = {"destination": delivery.destination, "address": delivery.address}
    subject = snapshots.job_subject(snapshot)
    audit_log.log_event(what=what, by=by, now=now, project=snapshot.project_id, subject=subject, detail=detail)
