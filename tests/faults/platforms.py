"""Start the whole platform, on one machine or as separate servers, and kill any part."""

import os
import random
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection

from host import socket_paths
from supervisor import database, paths
from tests import servers
from tests.supervisor import platform_process


class OneMachine:
    """`./run`: the supervisor restarts its processes, and the test restarts the supervisor."""

    parts = ("web", "worker", "broker", "database", "preload", "supervisor")
    _words: Mapping[str, str] = {"broker": "valkey-server", "database": "bin/postgres"}

    def __init__(self, folder: Path, started: Path | None = None) -> None:
        self.data, self.port = folder / "data", paths.find_free_port(0)
        if started is not None:
            platform_process.copy_data(started, self.data)
        self.broker = f"unix://{socket_paths.broker_socket_path(self.data)}"
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        command = [str(platform_process.BASE / "run"), "--no-demo", "--port", str(self.port), "--data", str(self.data)]
        env = {**platform_process.clean_environment(), "SECRET_KEY": settings.SECRET_KEY}
        pipe, out = subprocess.PIPE, subprocess.STDOUT
        process = subprocess.Popen(command, stdout=pipe, stderr=out, text=True, env=env)
        self.running = platform_process.PlatformProcess(self.data, process)
        self.running.wait_for("Stepmark is ready at")

    def kill(self, part: str, chance: random.Random) -> None:
        if part == "supervisor":
            self.running.process.kill()
            self.running.process.wait()
            servers.wait_until(lambda: not self.running.family(), what="the end of all processes")
            self.start()
            connection.close()  # the database has restarted
            return
        word = self._words.get(part, f"stepmark-{part}")
        pids = [pid for pid, command in self.running.family().items() if word in command]
        if pids:
            os.kill(min(pids) if part == "database" else chance.choice(pids), signal.SIGKILL)
        if part == "database":
            connection.close()
            servers.wait_until(lambda: database.answers(self.data), what="the database")

    def end(self) -> None:
        self.running.end()


class ManyMachines:
    """The test's PostgreSQL, and a broker, web, worker and beat as processes that are restarted immediately."""

    parts = ("web", "worker", "broker")

    def __init__(self, folder: Path, sockets: Path) -> None:
        self.folder, self.socket, self.port = folder, sockets / "redis.sock", paths.find_free_port(0)
        self.broker = f"unix://{self.socket}"
        self.env = {
            **servers.process_environment(folder, broker=self.broker),
            "SECRET_KEY": settings.SECRET_KEY,
            "STEPMARK_ORIGIN": self.url.rstrip("/"),
            "STEPMARK_WEB_WORKERS": "2",
        }
        self.servers = {part: self._start(part) for part in ("broker", "web", "worker", "beat")}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def kill(self, part: str, chance: random.Random) -> None:
        self.servers[part].kill()
        self.servers[part] = self._start(part)

    def end(self) -> None:
        for server in self.servers.values():
            server.kill()

    def _start(self, part: str) -> servers.ServerProcess:
        log = self.folder / f"{part}.log"
        if part == "broker":  # it is not persistent: its messages are lost
            self.socket.unlink(missing_ok=True)
            return servers.start_redis(self.socket, log)
        if part == "worker":
            return servers.start_worker(env=self.env, log=log, concurrency=2)
        if part == "web":
            return servers.start_web_server(bind=f"127.0.0.1:{self.port}", env=self.env, log=log)
        beat = ["-m", "celery", "--app", "config.celery", "beat", "--schedule", str(self.folder / "schedule")]
        return servers.start_python(*beat, "--pidfile", "", env=self.env, log=log, is_forked=False)


PlatformUnderTest = OneMachine | ManyMachines


@contextmanager
def running_platform(
    folder: Path, kind: type[PlatformUnderTest], started: Path | None = None
) -> Iterator[PlatformUnderTest]:
    """Run a platform, and use its database in this process. `started` is a data folder that it continues with."""
    with servers.short_folder() as sockets, ExitStack() as closing:
        platform = OneMachine(folder, started) if kind is OneMachine else ManyMachines(folder, sockets)
        closing.callback(platform.end)
        if isinstance(platform, OneMachine):
            closing.enter_context(servers.looking_into(platform.data))
        yield platform
