"""Says why work failed: what happened and where, in words for people, without secrets. Writes nothing."""

import re
import traceback
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

_LONGEST = 1000
_SECRETS = (
    (re.compile(r"(?<=://)[^/\s@]+(?=@)"), "…"),  # user:password@ of an address
    (re.compile(r"(?i)\b(bearer|basic)\s+\S+"), r"\1 …"),
    (
        re.compile(r"(?i)\b((?:api[_-]?key|token|secret|password|passwd|signature|authorization)[\"']?\s*[=:]\s*)\S+"),
        r"\1…",
    ),
)


class JobFailed(Exception):
    """What a handler raises when a person can put it right. Its text says what happened, where, and what to do."""


def describe_failure(error: BaseException) -> str:
    """Why the job failed, for the person who looks at it."""
    message = " ".join(redact_secrets(str(error)).split())
    if isinstance(error, JobFailed) and message:
        return message[:_LONGEST]
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{what[:_LONGEST]} ({_innermost_own_line(error)})"


def describe_repeated_loss(starts: int, last: str) -> str:
    """Why the sweep gave up on work whose runner vanished again and again."""
    said = _(
        "The worker stopped %(starts)d times at the same place without a word; it may have run out of memory."
        " Look into the worker's log, then retry."
    ) % {"starts": starts}
    return f"{said} ({last})" if last else said


def redact_secrets(text: str) -> str:
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _innermost_own_line(error: BaseException) -> str:
    """The innermost line of our own code: libraries' lines tell a person nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    base = Path(settings.BASE_DIR)
    for frame in reversed(frames):
        path = Path(frame.filename)
        if path.is_relative_to(base) and not path.is_relative_to(base / ".venv"):
            return f"{path.relative_to(base)}, line {frame.lineno}"
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else _("at an unknown place")
