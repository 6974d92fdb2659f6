"""Run the platform: lock the data folder, install, start the programs, keep them running, stop them."""

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from supervisor import StartupError, broker, children, database, install, paths
from supervisor.children import StartProcess, SupervisedChild

READY_TIMEOUT = 120.0
MAX_DEATHS_BEFORE_READY = 4  # deaths of one program before the platform was ever ready


def run_platform(folder: Path, *, port: int, with_demo: bool) -> None:
    """Run the platform until a stop is requested."""
    children.install_stop_handlers()
    started: list[SupervisedChild] = []
    try:
        port = paths.find_free_port(port)
        url = f"http://127.0.0.1:{port}/"
        with paths.lock_data_folder(folder, url=url):
            install.install_requirements()
            os.umask(0o077)  # files of the data folder are for this user only, whatever the mode of the folder
            env = _build_environment(folder, url=url)
            _start_all(started, folder, port, env, with_demo=with_demo)
            children.print_line(f"Stepmark is ready at {url}")
            children.watch_forever(started)
    except children.StopRequested:
        children.print_line("Stopping …")
    finally:
        children.stop_children(started, last=("postgresql", "valkey"))


def _start_all(
    started: list[SupervisedChild], folder: Path, port: int, env: Mapping[str, str], *, with_demo: bool
) -> None:
    """Start PostgreSQL and Valkey, unless the environment names others, then the platform."""
    logs = folder / "logs"
    if not (env.get("DATABASE_URL") or env.get("DATABASE_URL_FILE")):
        database.prepare(folder)
        begin: StartProcess = partial(database.start, folder, env=env)
        own = SupervisedChild("postgresql", begin, logs / "postgresql.log", stops_by=signal.SIGINT)  # a fast shutdown
        with database.no_command(folder):
            _start_program(own, started, lambda: database.answers(folder), within=database.READY_WITHIN)
    if not (env.get("REDIS_URL") or env.get("REDIS_URL_FILE")):
        begin = partial(children.start_guarded, broker.broker_command(folder), env=env)
        own = SupervisedChild("valkey", begin, logs / "valkey.log")
        _start_program(own, started, lambda: broker.is_answering(folder), within=15)
    # This process loads the application and forks the web server and the worker.
    command = [str(install.PYTHON), "-m", "supervisor.preload", str(port), *(["--demo"] if with_demo else [])]
    begin = partial(children.start_guarded, command, env=env, speaks=True)
    preload = SupervisedChild("preload", begin, logs / "preload.log")
    _start_program(preload, started, lambda: _is_ready(port, env["STEPMARK_ORIGIN"]), within=READY_TIMEOUT)
    if greeting := (logs / "prepare.log").read_text(errors="replace").strip():
        children.print_line(greeting)
        os.truncate(logs / "prepare.log", 0)  # login links of the demo work for hours


def _build_environment(folder: Path, *, url: str) -> dict[str, str]:
    """Build the environment: the user's variables win, except for the data folder and internal ones."""
    return {
        "STEPMARK_ORIGIN": url.rstrip("/"),
        "MALLOC_ARENA_MAX": "2",  # a third less memory with threads
        **os.environ,
        "STEPMARK_DATA": str(folder),
        "STEPMARK_SUPERVISOR": str(os.getpid()),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": str(paths.BASE),
        # Some containers and shells set it. Each start would then compile everything, which takes seconds and leaves
        # ten megabytes of holes in the memory.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONUNBUFFERED": "1",
    }


def _start_program(
    program: SupervisedChild, started: list[SupervisedChild], is_ready: Callable[[], bool], *, within: float
) -> None:
    """Start a program, after adding it to those that will be stopped, and wait until it is ready."""
    started.append(program)
    program.start()
    ends = time.monotonic() + within
    while not is_ready():
        if program.ended_with() == children.EXIT_CANNOT_START:
            raise StartupError(_explain_end(program))
        children.restart_dead(started)
        if program.deaths >= MAX_DEATHS_BEFORE_READY or time.monotonic() > ends:
            raise StartupError(f"{program.name} does not start: {_explain_end(program)}")
        time.sleep(0.05)


def _explain_end(program: SupervisedChild) -> str:
    return f"{children.last_log_line(program.log)} (its log is {program.log})"


def _is_ready(port: int, origin: str) -> bool:
    """Request a page under the platform's public host name. The preparation has checked the database."""
    request = f"GET /health/live HTTP/1.0\r\nHost: {urlsplit(origin).netloc}\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            line.sendall(request.encode())
            status = line.makefile("rb").readline().split()[1:2]
    except OSError:
        return False
    return bool(status) and int(status[0]) < 400
