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

LARGEST = 50 * 1024**3
LONGEST_NAME = 120  # bytes: file systems count those, and take 255
KEPT = dt.timedelta(days=7)
FOLDER = re.compile(r"[0-9a-f]{16}")


class CutOff(Exception):
    """Less came than was announced: the sender went away."""


class TooBig(Exception):
    """More than is taken over the network. A file that lies beside the server may be as large as it wants."""


def keep(*, name: str, parts: Iterable[bytes], size: int | None = None) -> Path:
    """The file under its own name, in a folder of its own. `size` is what the sender announced."""
    if size is not None and size > LARGEST:
        raise TooBig
    path = place(secrets.token_hex(8), name)
    try:
        _write(path, parts, size)
    except BaseException:
        forget(path)
        raise
    return path


def place(number: str, name: str) -> Path:
    """Where a file of this name can be written, in a folder of its own."""
    own = folder() / number
    own.mkdir(parents=True, mode=0o700, exist_ok=True)
    return own / safe_name(name)


def holds(path: Path) -> bool:
    """Whether the file was sent or fetched, so that its import may throw it away."""
    return path.parent.parent == folder() and bool(FOLDER.fullmatch(path.parent.name))


def forget(path: Path) -> None:
    """Nobody reads it any more."""
    shutil.rmtree(path.parent, ignore_errors=True)


def forget_old(*, now: dt.datetime) -> int:
    """Uploads are read within minutes, or were given up: a week is time enough to try again. Says how many went."""
    too_old = (now - KEPT).timestamp()
    old = [path for path in folder().glob("*/") if FOLDER.fullmatch(path.name) and path.stat().st_mtime < too_old]
    for each in old:
        shutil.rmtree(each, ignore_errors=True)
    return len(old)


def folder() -> Path:
    return Path(settings.DATA_DIR) / "imports"


def safe_name(name: str) -> str:
    """The last part of the name, without what could lead elsewhere or hide."""
    last = re.split(r"[\\/]", name)[-1]
    plain = re.sub(r"[^\w.+-]", "_", last).lstrip(".").encode()
    return plain[-LONGEST_NAME:].decode(errors="ignore") or "traces.jsonl"


def _write(path: Path, parts: Iterable[bytes], size: int | None) -> None:
    written = 0
    with path.open("wb") as file:
        for part in parts:
            written += len(part)
            if written > LARGEST:
                raise TooBig
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    if size is not None and written != size:
        raise CutOff
