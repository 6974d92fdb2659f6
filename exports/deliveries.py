"""Delivers snapshots to the places that are set up for it, behind the scenes. Alone changes Delivery.

A job a delivery. It keeps how many files lie there: broken off or refused, it goes on with the next one.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from django.db import transaction

from accounts.models import User
from events import audit_log
from exports import destinations, snapshots
from exports.destinations import HUB, S3
from exports.models import Delivery, Snapshot
from jobs import control
from jobs.failures import JobFailed
from jobs.models import Job, JobState
from jobs.runner import Chunk, JobProgress
from labeling.traces import object_store

# Sends the files of a snapshot elsewhere: to S3-compatible storage, or to a repository of the Hugging Face hub. Reads


MANIFEST_NAME = "manifest.json"


class DeliveryFailed(JobFailed):
    """The address is of no known kind, the packages are missing, or the other side refused. Says which."""


class DeliveryTarget(Protocol):
    """Where files can be put. Putting one again replaces it by the same."""

    def put(self, name: str, path: Path) -> None: ...

    def close(self, names: Sequence[str], label: str) -> None:
        """Everything lies there."""


class ObjectStore:
    """A bucket and a prefix in it: `s3://bucket/prefix`. Keys come from the environment, as for every tool."""

    def __init__(self, address: str) -> None:
        try:
            from obstore import store as stores
        except ImportError as error:
            raise DeliveryFailed("object stores need the extra packages: pip install 'stepmark[s3]'") from error
        bucket, _, self._prefix = address.removeprefix(S3).rstrip("/").partition("/")
        made: Any = stores.from_url
        self._store = made(
            f"{S3}{bucket}", retry_config=object_store.RETRY_CONFIG, client_options=object_store.CLIENT_OPTIONS
        )

    def put(self, name: str, path: Path) -> None:
        self._store.put(f"{self._prefix}/{name}" if self._prefix else name, path)

    def close(self, names: Sequence[str], label: str) -> None:
        """Nothing is left to do: a prefix belongs to one snapshot."""


class HubRepository:
    """A dataset repository of the hub: `hf://owner/name`. The token is HF_TOKEN's. A snapshot that goes where another
    one lay takes the place of its data; both stay to be had by their tags."""

    def __init__(self, address: str, api: Any = None) -> None:
        self._name = address.removeprefix(HUB).strip("/")
        if api is None:
            try:
                from huggingface_hub import HfApi
            except ImportError as error:
                raise DeliveryFailed("the hub needs the extra packages: pip install 'stepmark[hf]'") from error
            api = HfApi()
        self._api = api
        self._of = {"repo_id": self._name, "repo_type": "dataset"}
        self._api.create_repo(**self._of, private=True, exist_ok=True)

    def put(self, name: str, path: Path) -> None:
        self._api.upload_file(path_or_fileobj=str(path), path_in_repo=name, **self._of)

    def close(self, names: Sequence[str], label: str) -> None:
        there = self._api.list_repo_files(**self._of)
        older = sorted(name for name in there if name.startswith("data/") and name not in names)
        if older:
            self._api.delete_files(delete_patterns=older, **self._of)
        self._api.create_tag(tag=label, exist_ok=True, **self._of)


def open_target(address: str) -> DeliveryTarget:
    try:
        if address.startswith(HUB):
            return HubRepository(address)
        if address.startswith(S3):
            return ObjectStore(address)
    except DeliveryFailed:
        raise
    except Exception as error:  # each library has errors of its own; the person is told where, and why
        raise DeliveryFailed(f"{address}: {_first_line(error)}") from error
    raise DeliveryFailed(f"{address} is neither s3://bucket/prefix nor hf://owner/name.")


def list_file_names(snapshot: Snapshot) -> list[str]:
    """Every file that the snapshot lists, the manifest last."""
    return sorted(snapshot.files.values_list("name", flat=True), key=lambda name: (name == MANIFEST_NAME, name))


def send_files(snapshot: Snapshot, place: DeliveryTarget, *, after: int = 0) -> Iterator[str]:
    """Names each file once it is there, beginning behind so many. Done twice it changes nothing."""
    return _send_each(list_file_names(snapshot), snapshots.snapshot_folder(snapshot), place, snapshot.name, after)


def _send_each(wanted: list[str], folder: Path, place: DeliveryTarget, label: str, after: int) -> Iterator[str]:
    """Asks no database: it may be another thread that sends."""
    for name in wanted[after:]:
        try:
            place.put(name, folder / name)
        except Exception as error:  # each library has errors of its own; the person is told which file, and why
            raise DeliveryFailed(f"{name}: {_first_line(error)}") from error
        yield name
    try:
        place.close(wanted, label)
    except Exception as error:  # as above
        raise DeliveryFailed(f"{label}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """The libraries' own words are pages long, and may hold what was signed."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


DELIVER = "exports.deliver"
_HEARTBEAT = 3.0  # seconds, while a large file is on its way


@dataclass(frozen=True)
class DeliveryStatus:
    """How far a delivery is, from its job."""

    delivery: Delivery
    state: str
    done: int
    total: int | None
    failure: str

    @property
    def is_at_work(self) -> bool:
        return self.state in (JobState.QUEUED, JobState.RUNNING)


def request_delivery(*, snapshot: Snapshot, destination: str, by: User | None, now: dt.datetime) -> Delivery:
    """Once for each destination: asked again, what failed is tried again, what is there or on its way stays."""
    destinations.validate_destinations([destination])
    address = destinations.build_address(destination, project=snapshot.project.slug, snapshot=snapshot.name)
    with transaction.atomic():
        made, is_new = Delivery.objects.get_or_create(
            snapshot=snapshot, destination=destination, defaults={"address": address, "asked_at": now, "asked_by": by}
        )
        if is_new:
            _log_event("snapshot.delivery_asked", made, by=by, now=now)
            control.request_job(
                kind=DELIVER, subject=job_subject(made), arguments={"delivery": made.pk}, by=by, now=now
            )
        elif (job := _find_job(made)) and job.state in (JobState.FAILED, JobState.CANCELLED):
            control.retry_job(job=job, by=by, now=now)
    return made


def job_subject(delivery: Delivery) -> str:
    return f"delivery:{delivery.pk}"


def list_delivery_statuses(snapshot: Snapshot) -> list[DeliveryStatus]:
    """Every delivery of a snapshot, in the order in which they were asked for."""
    return [_load_status(each) for each in snapshot.deliveries.order_by("pk")]


def _load_status(delivery: Delivery) -> DeliveryStatus:
    job = _find_job(delivery)
    if job is None or delivery.delivered_at is not None:
        return DeliveryStatus(delivery, JobState.DONE, 0, None, "")
    return DeliveryStatus(delivery, job.state, job.done, job.total, job.failure)


def _find_job(delivery: Delivery) -> Job | None:
    return Job.objects.filter(kind=DELIVER, subject=job_subject(delivery)).order_by("-pk").first()


def run_delivery(delivery: Delivery, *, sent: int) -> Iterator[JobProgress | Chunk]:
    """File by file, going on behind those that are there. While one is on its way, signs of life."""
    if delivery.delivered_at is not None:
        return
    total = len(list_file_names(delivery.snapshot))
    yield JobProgress(sent, total)
    files = send_files(delivery.snapshot, open_target(delivery.address), after=sent)
    with ThreadPoolExecutor(1) as sender:
        while True:
            name = sender.submit(next, files, None)
            yield from _wait_for_file(name, sent, total)
            if name.result() is None:
                break
            sent += 1
            yield JobProgress(sent, total, {"sent": sent})
    yield partial(_mark_delivered, delivery, total)


def _wait_for_file(name: "Future[str | None]", sent: int, total: int) -> Iterator[JobProgress]:
    while not wait([name], timeout=_HEARTBEAT).done:
        yield JobProgress(sent, total)


def _mark_delivered(delivery: Delivery, total: int, now: dt.datetime) -> JobProgress:
    if Delivery.objects.filter(pk=delivery.pk, delivered_at=None).update(delivered_at=now):
        _log_event("snapshot.delivered", delivery, by=delivery.asked_by, now=now)
    return JobProgress(total, total)


def _log_event(what: str, delivery: Delivery, *, by: User | None, now: dt.datetime) -> None:
    of = delivery.snapshot
    detail = {"destination": delivery.destination, "address": delivery.address}
    audit_log.log_event(what=what, by=by, now=now, project=of.project_id, subject=f"snapshot:{of.pk}", detail=detail)
