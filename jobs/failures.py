"""Describe why a job failed: what happened and where, without secrets."""

import datetime as dt
import re
import traceback
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from events import audit_log
from host import disk
from jobs.models import Job

_MAX_LENGTH = 1000
_SECRETS = (
    (re.compile(r"(?<=://)[^/\s@]+(?=@)"), "…"),  # user:password@ of an address
    (re.compile(r"(?i)\b(bearer|basic)\s+\S+"), r"\1 …"),
    (
        re.compile(r"(?i)\b((?:api[_-]?key|token|secret|password|passwd|signature|authorization)[\"']?\s*[=:]\s*)\S+"),
        r"\1…",
    ),
)


class JobFailed(Exception):
    """A failure that a person can fix. The message says what happened, where, and what to do."""


class DiskNearlyFull(JobFailed):
    pass


def check_free_space() -> None:
    """Stop a job that writes a lot before it fills the disk, because on a full disk no one could save a rating."""
    if disk.is_low(settings.DATA_DIR, least_free=settings.LEAST_FREE_BYTES):
        least = settings.LEAST_FREE_BYTES // 2**20
        message = _("The data folder has less than %(least)d MB free. Free up some space, then retry.")
        raise DiskNearlyFull(message % {"least": least})


def describe_failure(error: BaseException) -> str:
    """Return the reason that people see."""
    message = " ".join(redact_secrets(str(error)).split())
    if isinstance(error, JobFailed) and message:
        return message[:_MAX_LENGTH]
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{what[:_MAX_LENGTH]} ({_innermost_own_line(error)})"


def describe_repeated_loss(starts: int, last: str) -> str:
    """Return the reason why a job failed that lost its runner too many times."""
    message = _(
        "The worker stopped %(starts)d times at the same place without an error. It may have run out of "
        "memory. Check the worker’s log, then retry."
    ) % {"starts": starts}
    return f"{message} ({last})" if last else message


def log_failure(*, job: Job, now: dt.datetime) -> None:
    """Log the failure of a job that a person requested. The worker's log has failures of the platform's own jobs."""
    if job.asked_by_id is not None:
        detail = {"kind": job.kind, "of": job.subject}
        audit_log.log_event(what="job.failed", by=None, now=now, subject=f"job:{job.pk}", detail=detail)


def redact_secrets(text: str) -> str:
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _innermost_own_line(error: BaseException) -> str:
    """Return the innermost line of our own code, which explains more than a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    base = Path(settings.BASE_DIR)
    for frame in reversed(frames):
        path = Path(frame.filename)
        if path.is_relative_to(base) and not path.is_relative_to(base / ".venv"):
            return f"{path.relative_to(base)}, line {frame.lineno}"
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else _("unknown location")
