"""How far a snapshot is, from its jobs. Reads only."""

from dataclasses import dataclass

from exports import snapshots
from exports.models import Snapshot
from jobs.models import Job, JobState

BUILT, BUILDING, FAILED, CANCELLED = "built", "building", "failed", "cancelled"


@dataclass(frozen=True)
class Standing:
    state: str
    done: int
    total: int | None
    failure: str
    failed: Job | None

    @property
    def is_at_work(self) -> bool:
        return self.state == BUILDING


def of(snapshot: Snapshot) -> Standing:
    """Rows of the manifest that are written, and what stands in the way."""
    if snapshot.built_at is not None:
        return Standing(BUILT, 0, None, "", None)
    jobs = list(Job.objects.filter(subject=snapshots.subject(snapshot)).order_by("pk"))
    failed = next((job for job in jobs if job.state == JobState.FAILED), None)
    total = snapshot.manifest.n_rows if snapshot.manifest else None
    done = min(sum(job.done for job in jobs if job.kind == snapshots.BUILD), total or 0)
    if snapshot.cancelled_at is not None:
        return Standing(CANCELLED, done, total, "", None)
    if failed is not None:
        return Standing(FAILED, done, total, failed.failure, failed)
    return Standing(BUILDING, done, total, "", None)
