"""The order of things: hold the place, set up, start the programs, say when they are ready, keep them, stop them."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from supervisor import Trouble, broker, child, command_database, database, install, keeping, place, programs
from supervisor.child import Child

READY_WITHIN = 120.0
GIVE_UP_AFTER = 4  # deaths of one program before the platform was ever ready


def open_for(folder: Path, *, port: int, with_demo: bool) -> None:
    """Run the platform until somebody asks to stop."""
    keeping.listen_for_the_end()
    started: list[Child] = []
    try:
        port = place.free_port(port)
        url = f"http://127.0.0.1:{port}/"
        with place.hold(folder, url=url):
            install.install()
            env = programs.environment(folder, url=url, given=os.environ)
            _start_all(started, folder, port, env, with_demo=with_demo)
            keeping.say(f"Stepmark is ready at {url}")
            keeping.keep(started)
    except keeping.Told:
        keeping.say("Stopping …")
    finally:
        keeping.stop(started, last=("postgresql", "valkey"))


def _start_all(started: list[Child], folder: Path, port: int, env: Mapping[str, str], *, with_demo: bool) -> None:
    if own := programs.embedded_database(folder, env):
        database.prepare(folder)
        with command_database.no_command(folder):
            _start(own, started)
            _wait(started, lambda: database.answers(folder), within=database.READY_WITHIN)
    if own := programs.embedded_broker(folder, env):
        _start(own, started)
        _wait(started, lambda: broker.answers(folder), within=15)
    _start(programs.platform(folder, port, env, with_demo=with_demo), started)
    _wait(started, lambda: _can_be_used(port, env["STEPMARK_ORIGIN"]), within=READY_WITHIN)
    if greeting := programs.greeting(folder):
        keeping.say(greeting)


def _start(program: Child, started: list[Child]) -> None:
    """Noted first: whatever happens next, it will be stopped."""
    started.append(program)
    program.start()


def _wait(started: list[Child], is_ready: Callable[[], bool], *, within: float) -> None:
    """Until the program that was started last can be used."""
    ends = time.monotonic() + within
    last = started[-1]
    while not is_ready():
        if last.ended_with() == child.CANNOT_BEGIN:
            raise Trouble(f"{child.last_line(last.log)} (its log is {last.log})")
        keeping.look_after(started)
        if last.deaths >= GIVE_UP_AFTER or time.monotonic() > ends:
            raise Trouble(f"{last.name} does not start: {child.last_line(last.log)} (its log is {last.log})")
        time.sleep(0.05)


def _can_be_used(port: int, origin: str) -> bool:
    """Ask as a browser would, under the name that the platform is known by."""
    asked = f"GET /health/ready HTTP/1.0\r\nHost: {urlsplit(origin).netloc}\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            line.sendall(asked.encode())
            status = line.makefile("rb").readline().split()[1:2]
    except OSError:
        return False
    return bool(status) and int(status[0]) < 400
