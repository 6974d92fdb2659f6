"""The progress of a snapshot, from its jobs. Reads only."""

from dataclasses import dataclass

from exports import snapshots
from exports.models import Snapshot
from jobs.models import Job, JobState

BUILT, BUILDING, FAILED, CANCELLED = "built", "building", "failed", "cancelled"


@dataclass(frozen=True)
class SnapshotStatus:
    state: str
    done: int
    total: int | None
    failure: str
    failed: Job | None

    @property
    def is_at_work(self) -> bool:
        return self.state == BUILDING


def load_snapshot_status(snapshot: Snapshot) -> SnapshotStatus:
    """Return the state, the number of manifest rows written, and the failed job, if any."""
    if snapshot.built_at is not None:
        return SnapshotStatus(BUILT, 0, None, "", None)
    jobs = list(Job.objects.filter(subject=snapshots.job_subject(snapshot)).order_by("pk"))
    failed = next((job for job in jobs if job.state == JobState.FAILED), None)
    total = snapshot.manifest.n_rows if snapshot.manifest else None
    done = min(sum(job.done for job in jobs if job.kind == snapshots.BUILD), total or 0)
    if snapshot.cancelled_at is not None:
        return SnapshotStatus(CANCELLED, done, total, "", None)
    if failed is not None:
        return SnapshotStatus(FAILED, done, total, failed.failure, failed)
    return SnapshotStatus(BUILDING, done, total, "", None)
