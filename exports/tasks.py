"""Celery tasks of snapshots."""

import datetime as dt

from celery import shared_task

from exports import deliveries, finish_job, snapshots
from exports.models import Delivery, Snapshot
from jobs import runner

FINISH_LEASE = dt.timedelta(minutes=5)  # counting for the card of a large snapshot is one long chunk


@shared_task(name=snapshots.PREPARE)
def prepare(job_id: int) -> None:
    runner.run_job(job_id, lambda job: snapshots.prepare_snapshot(_load_snapshot(job.arguments), enqueue=True))


@shared_task(name=snapshots.BUILD)
def build_shard(job_id: int) -> None:
    runner.run_job(
        job_id, lambda job: snapshots.build_shard(_load_snapshot(job.arguments), job.arguments["shard"], enqueue=True)
    )


@shared_task(name=snapshots.FINISH)
def finish(job_id: int) -> None:
    runner.run_job(job_id, lambda job: finish_job.finish_snapshot(_load_snapshot(job.arguments)), lease=FINISH_LEASE)


@shared_task(name=deliveries.DELIVER)
def deliver(job_id: int) -> None:
    runner.run_job(
        job_id, lambda job: deliveries.run_delivery(_load_delivery(job.arguments), sent=job.checkpoint.get("sent", 0))
    )


def _load_delivery(arguments: dict[str, int]) -> Delivery:
    return Delivery.objects.select_related("snapshot__project", "asked_by").get(pk=arguments["delivery"])


def _load_snapshot(arguments: dict[str, int]) -> Snapshot:
    return Snapshot.objects.select_related("project", "manifest", "asked_by").get(pk=arguments["snapshot"])
