"""Deliver snapshots to object stores and repositories of the Hugging Face hub. Only this module writes `Delivery`.

The operator configures destinations by name in `STEPMARK_DESTINATIONS`, so that no one enters an address or a key on a
page. Each delivery is one job. Its checkpoint is the number of uploaded files, so a retry continues with the next one.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts.models import User
from exports import orders, snapshots
from exports.models import Delivery, Snapshot
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job, JobState
from jobs.runner import Chunk, JobProgress
from labeling.traces import locations

DELIVER = "exports.deliver"
MANIFEST_NAME = "manifest.json"
S3, HUB = "s3://", "hf://"
_HEARTBEAT_SECONDS = 3.0  # between heartbeats while a large file is uploaded


class DeliveryFailed(JobFailed):
    """The address is invalid, a package is missing, or the destination refused a file."""


def build_address(name: str, *, project: str, snapshot: str) -> str:
    """Return the address for one snapshot: a folder under an S3 prefix, or a repository of a hub owner."""
    base = settings.DESTINATIONS[name].rstrip("/")
    if base.startswith(HUB):
        return base if "/" in base.removeprefix(HUB) else f"{base}/{snapshot}"
    return f"{base}/{project}/{snapshot}"


class ObjectStore:
    """A bucket and a prefix in it: `s3://bucket/prefix`. Keys come from the usual environment variables."""

    def __init__(self, address: str) -> None:
        try:
            from obstore import store as stores
        except ImportError as error:
            raise DeliveryFailed(locations.MISSING_PACKAGES) from error
        bucket, _, self._prefix = address.removeprefix(S3).rstrip("/").partition("/")
        from_url: Any = stores.from_url
        self._store = from_url(
            f"{S3}{bucket}", retry_config=locations.STORE_RETRIES, client_options=locations.STORE_OPTIONS
        )

    def put(self, name: str, path: Path) -> None:
        self._store.put(f"{self._prefix}/{name}" if self._prefix else name, path)

    def close(self, names: Sequence[str], label: str) -> None:
        """Do nothing: a prefix belongs to one snapshot, so there are no older files to remove."""


class HubRepository:
    """A private dataset repository of the hub: `hf://owner/name`. The token comes from HF_TOKEN.

    A later snapshot in the same repository replaces the data files. Each snapshot has a tag with its name.
    """

    def __init__(self, address: str, api: Any = None) -> None:
        if api is None:
            try:
                from huggingface_hub import HfApi
            except ImportError as error:
                raise DeliveryFailed(locations.MISSING_PACKAGES) from error
            api = HfApi()
        self._api = api
        self._repository = {"repo_id": address.removeprefix(HUB).strip("/"), "repo_type": "dataset"}
        self._api.create_repo(**self._repository, private=True, exist_ok=True)

    def put(self, name: str, path: Path) -> None:
        self._api.upload_file(path_or_fileobj=str(path), path_in_repo=name, **self._repository)

    def close(self, names: Sequence[str], label: str) -> None:
        existing = self._api.list_repo_files(**self._repository)
        if outdated := sorted(name for name in existing if name.startswith("data/") and name not in names):
            self._api.delete_files(delete_patterns=outdated, **self._repository)
        self._api.create_tag(tag=label, exist_ok=True, **self._repository)


DeliveryTarget = ObjectStore | HubRepository


def open_target(address: str) -> DeliveryTarget:
    with _report_failure(address):
        if address.startswith(HUB):
            return HubRepository(address)
        if address.startswith(S3):
            return ObjectStore(address)
    raise DeliveryFailed(f"Unknown address {address!r}. Use s3://bucket/prefix or hf://owner/name.")


def _upload_files(
    names: Sequence[str], folder: Path, target: DeliveryTarget, *, label: str, start: int
) -> Iterator[str]:
    """Upload files of a folder from number `start`, yield each name when it is done, then close the target. Uploading
    a file twice is harmless."""
    for name in names[start:]:
        with _report_failure(name):
            target.put(name, folder / name)
        yield name
    with _report_failure(label):
        target.close(names, label)


@contextmanager
def _report_failure(subject: str) -> Iterator[None]:
    """Shorten a library's message, which can be pages long and contain signed headers."""
    try:
        yield
    except DeliveryFailed:
        raise
    except Exception as error:  # each library has its own exception classes
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DeliveryFailed(f"{subject}: {first_line[:300]}") from error


# --- deliveries ------------------------------------------------------------------------------------------------------


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
    orders.validate_destinations([destination])
    address = build_address(destination, project=snapshot.project.slug, snapshot=snapshot.name)
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
    return _upload_files(names, folder, target, label=snapshot.name, start=start)


def run_delivery(delivery: Delivery, *, sent: int) -> Iterator[JobProgress | Chunk]:
    """Upload file by file after the first `sent`, with heartbeats while a file is being uploaded."""
    if delivery.delivered_at is not None:
        return
    total = len(list_file_names(delivery.snapshot))
    yield JobProgress(sent, total)
    files = send_files(delivery.snapshot, open_target(delivery.address), start=sent)
    with ThreadPoolExecutor(1) as uploader:
        while True:
            name = uploader.submit(next, files, None)
            while not wait([name], timeout=_HEARTBEAT_SECONDS).done:
                yield JobProgress(sent, total)
            if name.result() is None:
                break
            sent += 1
            yield JobProgress(sent, total, {"sent": sent})
    yield partial(_mark_delivered, delivery, total)


def _mark_delivered(delivery: Delivery, total: int, now: dt.datetime) -> JobProgress:
    if Delivery.objects.filter(pk=delivery.pk, delivered_at=None).update(delivered_at=now):
        _log_event("snapshot.delivered", delivery, by=delivery.asked_by, now=now)
    return JobProgress(total, total)


def _log_event(what: str, delivery: Delivery, *, by: User | None, now: dt.datetime) -> None:
    detail = {"destination": delivery.destination, "address": delivery.address}
    snapshots.log_snapshot_event(what=what, snapshot=delivery.snapshot, by=by, now=now, detail=detail)
