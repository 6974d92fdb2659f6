"""Jobs as leads see them: what they do, how far they are, how long they will take."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dashboard.time_left import format_time_left
from jobs.models import Job, JobState

# A package that adds a kind of job adds its label here. Without one, the page shows the kind.
JOB_LABELS: dict[str, str | Promise] = {
    "labeling.bring_in": _("Import traces"),
    "labeling.undo_import": _("Undo an import"),
    "labeling.change_overlap": _("Change the labels per trace"),
    "labeling.recount": _("Recompute agreement"),
    "labeling.fit": _("Fit the rater model"),
    "prm.generation": _("Train and evaluate a PRM"),
    "prm.score": _("Score traces"),
    "prm.select": _("Select the next traces"),
    "exports.prepare": _("Freeze a snapshot"),
    "exports.build_shard": _("Write a snapshot"),
    "exports.finish": _("Finish a snapshot"),
    "exports.deliver": _("Deliver a snapshot"),
}

STANDALONE_SUBJECTS = ("project:", "prm:")


@dataclass(frozen=True)
class JobSummary:
    job: Job
    name: str
    percent: int | None
    time_left: str

    @property
    def is_under_way(self) -> bool:
        return self.job.state in (JobState.QUEUED, JobState.RUNNING)

    @property
    def is_cancelling(self) -> bool:
        return self.is_under_way and self.job.cancel_asked_at is not None

    @property
    def is_standalone(self) -> bool:
        """Jobs of a generation or snapshot are cancelled and retried together, on that page."""
        return self.job.subject.startswith(STANDALONE_SUBJECTS)

    @property
    def may_cancel(self) -> bool:
        return self.is_standalone and self.is_under_way and not self.is_cancelling

    @property
    def may_retry(self) -> bool:
        return self.is_standalone and self.job.state in (JobState.FAILED, JobState.CANCELLED)


def summarize_jobs(jobs: Sequence[Job], now: dt.datetime) -> list[JobSummary]:
    return [_summarize_job(job, now) for job in jobs]


def _summarize_job(job: Job, now: dt.datetime) -> JobSummary:
    share, seconds = job.share_done(), job.remaining_seconds(now)
    return JobSummary(
        job=job,
        name=str(JOB_LABELS.get(job.kind, job.kind)),
        percent=None if share is None else int(share * 100),
        time_left="" if seconds is None else format_time_left(seconds),
    )
