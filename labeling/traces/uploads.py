"""Store uploaded files in the data folder until their import has read them. An incomplete upload leaves no file."""

import datetime as dt
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

MAX_UPLOAD_BYTES = 50 * 1024**3
MAX_NAME_BYTES = 120  # file systems limit names to 255 bytes
RETENTION = dt.timedelta(days=7)
FOLDER_PATTERN = re.compile(r"[0-9a-f]{16}")


class UploadCutOff(Exception):
    """The upload ended before the announced size."""


class UploadTooLarge(Exception):
    """The upload exceeds the limit. Files in the incoming folder have no limit."""


def save_upload(*, name: str, parts: Iterable[bytes], size: int | None = None) -> Path:
    """Save an upload under its own name in a new folder. `size` is the size that the client announced."""
    if size is not None and size > MAX_UPLOAD_BYTES:
        raise UploadTooLarge
    path = make_upload_path(secrets.token_hex(8), name)
    try:
        _write_parts(path, parts, size)
    except BaseException:
        delete_upload(path)
        raise
    return path


def make_upload_path(number: str, name: str) -> Path:
    """Make the folder of an upload and return the path of the file in it."""
    folder = uploads_folder() / number
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    return folder / safe_name(name)


def is_upload(path: Path) -> bool:
    """Tell whether the file was uploaded or downloaded, so that its import may delete it."""
    return path.parent.parent == uploads_folder() and bool(FOLDER_PATTERN.fullmatch(path.parent.name))


def delete_upload(path: Path) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)


def delete_old_uploads(*, now: dt.datetime) -> int:
    """Delete uploads that no import has read for a week. Returns their number."""
    too_old = (now - RETENTION).timestamp()
    old = [
        path
        for path in uploads_folder().glob("*/")
        if FOLDER_PATTERN.fullmatch(path.name) and path.stat().st_mtime < too_old
    ]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return len(old)


def uploads_folder() -> Path:
    return Path(settings.DATA_DIR) / "imports"


def safe_name(name: str) -> str:
    """Return the last part of a file name without special characters and leading dots."""
    last = re.split(r"[\\/]", name)[-1]
    plain = re.sub(r"[^\w.+-]", "_", last).lstrip(".").encode()
    return plain[-MAX_NAME_BYTES:].decode(errors="ignore") or "traces.jsonl"


def _write_parts(path: Path, parts: Iterable[bytes], size: int | None) -> None:
    written = 0
    with path.open("wb") as file:
        for part in parts:
            written += len(part)
            if written > MAX_UPLOAD_BYTES:
                raise UploadTooLarge
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    if size is not None and written != size:
        raise UploadCutOff
