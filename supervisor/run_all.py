"""Run the platform: lock the data folder, install, start the programs, keep them running, stop them."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from supervisor import StartupError, broker, child, command_database, database, install, paths, programs, watchdog
from supervisor.child import SupervisedChild

READY_TIMEOUT = 120.0
MAX_DEATHS_BEFORE_READY = 4  # deaths of one program before the platform was ever ready


def run_platform(folder: Path, *, port: int, with_demo: bool) -> None:
    """Run the platform until a stop is requested."""
    watchdog.install_stop_handlers()
    started: list[SupervisedChild] = []
    try:
        port = paths.find_free_port(port)
        url = f"http://127.0.0.1:{port}/"
        with paths.lock_data_folder(folder, url=url):
            install.install_requirements()
            env = programs.build_environment(folder, url=url, given=os.environ)
            _start_all(started, folder, port, env, with_demo=with_demo)
            watchdog.print_line(f"Stepmark is ready at {url}")
            watchdog.watch_forever(started)
    except watchdog.StopRequested:
        watchdog.print_line("Stopping …")
    finally:
        watchdog.stop_children(started, last=("postgresql", "valkey"))


def _start_all(
    started: list[SupervisedChild], folder: Path, port: int, env: Mapping[str, str], *, with_demo: bool
) -> None:
    if own := programs.embedded_database(folder, env):
        database.prepare(folder)
        with command_database.no_command(folder):
            _start_child(own, started)
            _wait_until_ready(started, lambda: database.answers(folder), within=database.READY_WITHIN)
    if own := programs.broker_child(folder, env):
        _start_child(own, started)
        _wait_until_ready(started, lambda: broker.is_answering(folder), within=15)
    _start_child(programs.platform_child(folder, port, env, with_demo=with_demo), started)
    _wait_until_ready(started, lambda: _is_ready(port, env["STEPMARK_ORIGIN"]), within=READY_TIMEOUT)
    if greeting := programs.read_greeting(folder):
        watchdog.print_line(greeting)


def _start_child(program: SupervisedChild, started: list[SupervisedChild]) -> None:
    """Start a program, after adding it to those that will be stopped."""
    started.append(program)
    program.start()


def _wait_until_ready(started: list[SupervisedChild], is_ready: Callable[[], bool], *, within: float) -> None:
    """Wait until the last started program is ready."""
    ends = time.monotonic() + within
    last = started[-1]
    while not is_ready():
        if last.ended_with() == child.EXIT_CANNOT_START:
            raise StartupError(f"{child.last_log_line(last.log)} (its log is {last.log})")
        watchdog.restart_dead(started)
        if last.deaths >= MAX_DEATHS_BEFORE_READY or time.monotonic() > ends:
            raise StartupError(f"{last.name} does not start: {child.last_log_line(last.log)} (its log is {last.log})")
        time.sleep(0.05)


def _is_ready(port: int, origin: str) -> bool:
    """Request the health page under the platform's public host name."""
    request = f"GET /health/ready HTTP/1.0\r\nHost: {urlsplit(origin).netloc}\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            line.sendall(request.encode())
            status = line.makefile("rb").readline().split()[1:2]
    except OSError:
        return False
    return bool(status) and int(status[0]) < 400
