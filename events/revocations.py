"""A file outside of the database that lists revoked access, so that a restored backup does not bring it back.

The file names accounts by a checksum. It is small: one line for each erased person, changed password, removed second
factor or identity, withdrawn operator right, and ended or lowered membership.
"""

import datetime as dt
import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

logger = structlog.get_logger(__name__)


def compute_account_digest(*, user_id: int, joined_at: dt.datetime) -> str:
    """Return a checksum that identifies an account in every backup of this platform, but in no other platform's
    backups."""
    return hashlib.sha256(f"{user_id} {joined_at.isoformat()}".encode()).hexdigest()


def note_revocation(*, what: str, account: str, now: dt.datetime, **detail: Any) -> None:
    """Append a line that survives a power cut. Raises OSError."""
    file = Path(settings.REVOCATIONS_FILE)
    file.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"what": what, "account": account, "at": now.isoformat(), **detail}).encode() + b"\n"
    handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # several processes write
        _append_whole(handle, line)
        os.fsync(handle)
    finally:
        os.close(handle)
    _sync_folder(file.parent)  # a new file is in the folder after a power cut, too


def _append_whole(handle: int, line: bytes) -> None:
    """Append the whole line, or nothing. A line that a crash cut off is ended first, so that it does not corrupt the
    next one."""
    size = os.fstat(handle).st_size
    if size and os.pread(handle, 1, size - 1) != b"\n":
        line = b"\n" + line
    try:
        if os.write(handle, line) != len(line):
            raise OSError(errno.ENOSPC, "the line was not written completely")
    except OSError:
        os.ftruncate(handle, size)
        raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def note_after_commit(*, what: str, account: str, now: dt.datetime, **detail: Any) -> None:
    """Append a line after the commit. A file that cannot be written must not keep people from changing a password."""
    transaction.on_commit(partial(_note_or_log, what=what, account=account, now=now, **detail))


def _note_or_log(**line: Any) -> None:
    try:
        note_revocation(**line)
    except OSError:
        logger.exception("revocation_not_noted", what=line["what"])


def read_revocations(*, what: str, since: dt.datetime | None = None) -> Iterator[dict[str, Any]]:
    """Yield the lines of one kind, oldest first; with `since`, those of that time and later."""
    file = Path(settings.REVOCATIONS_FILE)
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            line = json.loads(text)
            at = dt.datetime.fromisoformat(line["at"])
        except (ValueError, KeyError):  # the last line before a crash
            continue
        if line["what"] == what and (since is None or at >= since):
            yield line
