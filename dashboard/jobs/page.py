"""Jobs as people read them: what they do, how far they are, how long they still take."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.models import Job, JobState

# Rooms above name their kinds here as they come; one without a name shows its own.
JOB_LABELS: dict[str, str | Promise] = {
    "labeling.bring_in": gettext_lazy("Bring traces in"),
    "labeling.undo_import": gettext_lazy("Take an import back"),
    "labeling.change_overlap": gettext_lazy("Change how often traces are read"),
    "labeling.recount": gettext_lazy("Count agreement anew"),
    "labeling.fit": gettext_lazy("Learn how raters err"),
    "prm.generation": gettext_lazy("Train and judge a PRM"),
    "prm.score": gettext_lazy("Score traces"),
    "prm.select": gettext_lazy("Choose what is read next"),
    "exports.prepare": gettext_lazy("Freeze a snapshot"),
    "exports.build_shard": gettext_lazy("Write a snapshot"),
    "exports.finish": gettext_lazy("Finish a snapshot"),
    "exports.deliver": gettext_lazy("Send a snapshot"),
}


STANDALONE_SUBJECTS = ("project:", "prm:")


@dataclass(frozen=True)
class JobSummary:
    job: Job
    name: str
    percent: int | None
    remaining: str

    @property
    def is_under_way(self) -> bool:
        return self.job.state in (JobState.QUEUED, JobState.RUNNING)

    @property
    def is_part(self) -> bool:
        """Of a generation or a snapshot: these are stopped and tried again as a whole, on their own pages."""
        return not self.job.subject.startswith(STANDALONE_SUBJECTS)

    @property
    def may_retry(self) -> bool:
        return self.job.state in (JobState.FAILED, JobState.CANCELLED)


def summarize_jobs(jobs: Sequence[Job], now: dt.datetime) -> list[JobSummary]:
    return [_summarize_job(job, now) for job in jobs]


def _summarize_job(job: Job, now: dt.datetime) -> JobSummary:
    share, seconds = job.share_done(), job.remaining_seconds(now)
    return JobSummary(
        job=job,
        name=str(JOB_LABELS.get(job.kind, job.kind)),
        percent=None if share is None else int(share * 100),
        remaining="" if seconds is None else format_time_left(seconds),
    )


def format_time_left(seconds: float) -> str:
    """About how long: one unit is enough for a guess."""
    if seconds < 90:
        return _("about %(n)d s") % {"n": max(round(seconds), 1)}
    if seconds < 5400:
        return _("about %(n)d min") % {"n": round(seconds / 60)}
    return _("about %(n)d h") % {"n": round(seconds / 3600)}
