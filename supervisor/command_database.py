"""Give `manage.py` commands the embedded database, whether or not `./run` is running.

While `./run` is running, commands use its server. Otherwise the first command starts one, commands beside it share it,
and the first command stops it after the last of them has ended.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from supervisor import StartupError, database

COMMANDS_END_WITHIN = 10.0
ANSWERS_WITHIN = 30.0


@contextmanager
def serve(folder: Path) -> Iterator[None]:
    """Make sure that the database answers for the duration of the block."""
    with _users_file(folder) as users:
        with _one_at_a_time(folder):
            fcntl.flock(users, fcntl.LOCK_SH)
            server = ExitStack()
            if not _answers(folder):
                server.enter_context(database.running(folder))
                server.callback(fcntl.flock, users, fcntl.LOCK_EX)  # called first: waits until the other commands ended
        with server:
            yield


@contextmanager
def no_command(folder: Path) -> Iterator[None]:
    """Let the supervisor start its server: wait for commands to end, and keep new ones waiting meanwhile."""
    ends = time.monotonic() + COMMANDS_END_WITHIN
    with _one_at_a_time(folder), _users_file(folder) as users:
        while True:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > ends:
                    raise StartupError(
                        f"A manage.py command is still running on {folder}: wait for it to end, then start again."
                    ) from error
                time.sleep(0.1)
        yield


def _answers(folder: Path) -> bool:
    """Return whether a server answers. One that `./run` is about to start or restart is waited for."""
    ends = time.monotonic() + ANSWERS_WITHIN
    while not database.answers(folder):
        if not _is_held(folder / "supervisor.lock"):
            return False
        if time.monotonic() > ends:
            raise StartupError(
                f"./run is running on {folder}, but its database does not answer: see {folder / 'logs'}."
            )
        time.sleep(0.1)
    return True


def _is_held(file: Path) -> bool:
    if not file.exists():
        return False
    with file.open("r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _users_file(folder: Path) -> IO[str]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return (folder / "commands.lock").open("a")
    except OSError as error:
        raise StartupError(
            f"The data folder {folder} cannot be used ({error.strerror}): name another with --data DIR."
        ) from error


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process at a time decide who starts the server."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
