"""Keeps what is sent over the network until its import has read it: whole, or not at all. The folder lies in the data
folder, where every worker can read it."""

import datetime as dt
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

MAX_UPLOAD_BYTES = 50 * 1024**3
MAX_NAME_BYTES = 120  # bytes: file systems count those, and take 255
RETENTION = dt.timedelta(days=7)
FOLDER_PATTERN = re.compile(r"[0-9a-f]{16}")


class UploadCutOff(Exception):
    """Less came than was announced: the sender went away."""


class UploadTooLarge(Exception):
    """More than is taken over the network. A file that lies beside the server may be as large as it wants."""


def save_upload(*, name: str, parts: Iterable[bytes], size: int | None = None) -> Path:
    """The file under its own name, in a folder of its own. `size` is what the sender announced."""
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
    """Where a file of this name can be written, in a folder of its own."""
    own = uploads_folder() / number
    own.mkdir(parents=True, mode=0o700, exist_ok=True)
    return own / safe_name(name)


def is_upload(path: Path) -> bool:
    """Whether the file was sent or fetched, so that its import may throw it away."""
    return path.parent.parent == uploads_folder() and bool(FOLDER_PATTERN.fullmatch(path.parent.name))


def delete_upload(path: Path) -> None:
    """Nobody reads it any more."""
    shutil.rmtree(path.parent, ignore_errors=True)


def delete_old_uploads(*, now: dt.datetime) -> int:
    """Uploads are read within minutes, or were given up: a week is time enough to try again. Says how many went."""
    too_old = (now - RETENTION).timestamp()
    old = [
        path
        for path in uploads_folder().glob("*/")
        if FOLDER_PATTERN.fullmatch(path.name) and path.stat().st_mtime < too_old
    ]
    for each in old:
        shutil.rmtree(each, ignore_errors=True)
    return len(old)


def uploads_folder() -> Path:
    return Path(settings.DATA_DIR) / "imports"


def safe_name(name: str) -> str:
    """The last part of the name, without what could lead elsewhere or hide."""
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
