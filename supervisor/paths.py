"""Check and reserve the resources of this machine that the platform needs: data folder, port, socket folder."""

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from supervisor import StartupError

BASE = Path(__file__).resolve().parent.parent


def create_socket_folder(folder: Path, *, owner: int | None = None) -> None:
    """Create a folder that only this user, or `owner`, can enter: anyone who can write to the broker can start jobs."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid not in {os.getuid(), owner}:
        raise StartupError(f"The folder {folder} belongs to another user: remove it, or set TMPDIR to another folder.")


def lock_data_folder(folder: Path, *, url: str) -> IO[str]:
    """Create the data folder and lock it until the returned file is closed."""
    try:
        for part in (folder, folder / "logs", folder / "valkey"):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.fdopen(os.open(folder / "supervisor.lock", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+")
    except OSError as error:
        raise StartupError(
            f"The data folder {folder} is not writable ({error.strerror}): choose another with --data DIR."
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        with lock:
            lock.seek(0)
            holder = lock.read().strip() or "by another process"
        raise StartupError(
            f"The data folder {folder} is in use {holder}: stop it first, or choose another with --data DIR."
        ) from error
    lock.truncate(0)
    lock.write(f"at {url} (process {os.getpid()})\n")
    lock.flush()
    return lock


def find_free_port(port: int) -> int:
    """Return the port if it is free; for 0, return any free port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StartupError(
                f"Port {port} on 127.0.0.1 cannot be used ({error.strerror}): choose another with --port."
            ) from error
        return int(probe.getsockname()[1])
