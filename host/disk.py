"""The disk of the data folder: whether it takes writes, and how much room is left."""

import os
import shutil
import tempfile
from enum import StrEnum
from pathlib import Path


class DiskState(StrEnum):
    READY = "ready"
    LOW = "low"  # people can work; imports and exports stop
    UNWRITABLE = "unwritable"


def check_disk(folder: Path, *, least_free: int) -> DiskState:
    """Write and delete a small file, and compare the free bytes with those that should stay free."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(4096))
            os.fsync(file.fileno())
    except OSError:
        return DiskState.UNWRITABLE
    return DiskState.LOW if is_low(folder, least_free=least_free) else DiskState.READY


def sync_file(file: Path) -> None:
    """Wait until a file is on the disk. Folders too: a new name is on the disk only after its folder."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_low(folder: Path, *, least_free: int) -> bool:
    return folder.exists() and shutil.disk_usage(folder).free < least_free
