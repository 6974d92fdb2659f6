"""Where the platform stands: its data folder (held by one supervisor at a time), its port, its broker's socket."""

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from supervisor import StartupError

BASE = Path(__file__).resolve().parent.parent


def create_socket_folder(path: Path) -> None:
    """The socket's folder is ours and nobody else's: whoever can write to the broker can start jobs."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if path.parent.stat().st_uid != os.getuid():
        raise StartupError(
            f"The folder {path.parent} belongs to somebody else: remove it, or set TMPDIR to another folder."
        )


def lock_data_folder(folder: Path, *, url: str) -> IO[str]:
    """Make the data folder and lock it. The lock lives as long as the file that is returned stays open."""
    try:
        for part in (folder, folder / "logs", folder / "valkey"):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / "supervisor.lock").open("a+")
    except OSError as error:
        raise StartupError(
            f"The data folder {folder} cannot be written to ({error.strerror}): name another with --data DIR."
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        with lock:
            lock.seek(0)
            holder = lock.read().strip() or "by another process"
        raise StartupError(
            f"The data folder {folder} is in use {holder}: stop that one first, or name another with --data DIR."
        ) from error
    lock.truncate(0)
    lock.write(f"at {url} (process {os.getpid()})\n")
    lock.flush()
    return lock


def find_free_port(port: int) -> int:
    """The port, when it can be listened on; for 0, any that is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StartupError(
                f"Port {port} on 127.0.0.1 cannot be used ({error.strerror}): name another with --port."
            ) from error
        return int(probe.getsockname()[1])
