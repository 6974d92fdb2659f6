"""The order of things: hold the place, set up, start the programs, say when they are ready, keep them, stop them."""

import contextlib
import http.client
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from supervisor import Trouble, broker, child, install, place, programs
from supervisor.child import Child

READY_WITHIN = 120.0
STOPPED_WITHIN = 10.0
GIVE_UP_AFTER = 4  # deaths of one program before the platform was ever ready


class Told(BaseException):
    """Somebody asked us to stop."""


def open_for(folder: Path, *, port: int, with_demo: bool) -> None:
    """Run the platform until somebody asks to stop."""
    _listen_for_the_end()
    started: list[Child] = []
    try:
        port = place.free_port(port)
        url = f"http://127.0.0.1:{port}/"
        with place.hold(folder, url=url):
            install.install()
            env = programs.environment(folder, url=url, given=os.environ)
            _start_all(started, folder, port, env, with_demo=with_demo)
            say(f"Stepmark is ready at {url}")
            _keep(started)
    except Told:
        say("Stopping …")
    finally:
        _stop(started)


def say(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever read what we say may have gone; the platform stays
        print(text, flush=True)


def _start_all(started: list[Child], folder: Path, port: int, env: Mapping[str, str], *, with_demo: bool) -> None:
    if own := programs.embedded_broker(folder, env):
        _start(own, started)
        _wait(started, lambda: broker.answers(folder), within=15)
    greeting = _prepare(folder, env, with_demo=with_demo)
    web, *background = programs.platform(folder, port, env)
    _start(web, started)
    _wait(started, lambda: _can_be_used(port, env["STEPMARK_ORIGIN"]), within=READY_WITHIN)
    # These come when people are let in: until then all cores are for the web server.
    for program in background:
        _start(program, started)
    if greeting:
        say(greeting)


def _start(program: Child, started: list[Child]) -> None:
    """Noted first: whatever happens next, it will be stopped."""
    started.append(program)
    program.start()


def _prepare(folder: Path, env: Mapping[str, str], *, with_demo: bool) -> str:
    """What the preparation has to say to the person; its last line when it failed."""
    log = folder / "logs" / "prepare.log"
    with log.open("wb") as output:
        command = [str(install.PYTHON), "-m", "supervisor.prepare", *(["--demo"] if with_demo else [])]
        process = child.start(command, env=env, output=output.fileno())
        try:
            code = process.wait()
        finally:
            child.kill_group(process.pid)
    said = log.read_text(errors="replace").strip()
    if code:
        raise Trouble(f"{said.splitlines()[-1] if said else 'the preparation failed'} (its log is {log})")
    return said


def _wait(started: list[Child], is_ready: Callable[[], bool], *, within: float) -> None:
    """Until the program that was started last can be used."""
    ends = time.monotonic() + within
    while not is_ready():
        _look_after(started)
        last = started[-1]
        if last.deaths >= GIVE_UP_AFTER or time.monotonic() > ends:
            raise Trouble(f"{last.name} does not start: {_last_line(last.log)} (its log is {last.log})")
        time.sleep(0.05)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _can_be_used(port: int, origin: str) -> bool:
    """Ask as a browser would, under the name that the platform is known by."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        line.request("GET", "/health/ready", headers={"Host": urlsplit(origin).netloc})
        return line.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        line.close()


def _keep(started: list[Child]) -> None:
    while True:
        _look_after(started)
        time.sleep(0.25)


def _look_after(started: list[Child]) -> None:
    for program in started:
        if happened := program.keep_alive():
            say(happened)


def _stop(started: list[Child]) -> None:
    """The broker goes last: the others tell it that they leave. Asked a second time, nobody is waited for."""
    ends = [time.monotonic() + STOPPED_WITHIN]
    _on_end(lambda: ends.append(0.0))
    others = [program for program in started if program.name != "valkey"]
    for group in (others, [program for program in started if program.name == "valkey"]):
        for program in group:
            program.ask_to_stop()
        for program in group:
            program.stop(until=ends[-1])


def _listen_for_the_end() -> None:
    def stop() -> None:
        raise Told

    _on_end(stop)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # what a pipe reads must not wait


def _on_end(act: Callable[[], object]) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        act()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handle)
