"""Keep programs running: start them under a guard, restart those that die, stop them with their process groups."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from host import processes
from supervisor import paths

POLL_INTERVAL = 0.25
LOG_CHECK_INTERVAL = 60.0
MAX_RESTART_DELAY = 10.0
# After a program has run this long, its next restart is quick again.
STABLE_AFTER = 20.0
MAX_LOG_BYTES = 20_000_000
STOP_TIMEOUT = 10.0
# The exit code of a program whose failure a restart cannot fix. The last line of its log gives the reason.
EXIT_CANNOT_START = os.EX_CONFIG


class ProcessHandle(Protocol):
    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...


class StartProcess(Protocol):
    def __call__(self, *, output: int) -> ProcessHandle: ...


@dataclass
class SupervisedChild:
    name: str
    begin: StartProcess
    log: Path
    stops_by: signal.Signals = signal.SIGTERM
    deaths: int = 0
    _process: ProcessHandle | None = field(default=None, repr=False)
    _started: float = 0.0
    _wait_until: float = 0.0

    def start(self) -> None:
        rotate_log(self.log)
        with self.log.open("ab") as log:
            self._process = self.begin(output=log.fileno())
        self._started = time.monotonic()

    @property
    def pid(self) -> int:
        """The number of the process. Raises `ProcessLookupError` if there is none."""
        if self._process is None:
            raise ProcessLookupError(f"{self.name} is not running")
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ended_with(self) -> int | None:
        """Return the exit code of a program that ended and has not been restarted."""
        return self._process.poll() if self._process else None

    def restart_if_dead(self) -> str:
        """Restart the program if it is dead and its restart is due. Return a message when its death is noticed."""
        if self.is_alive():
            return ""
        if self._process is not None:
            return self._note_death(self._process, self._process.wait())
        if time.monotonic() >= self._wait_until:
            self.start()
        return ""

    def _note_death(self, process: ProcessHandle, code: int) -> str:
        kill_group(process.pid)  # its own children must not hold the port
        now = time.monotonic()
        self.deaths = 1 if now - self._started > STABLE_AFTER else self.deaths + 1
        self._wait_until = now + min(MAX_RESTART_DELAY, 0.1 * 2**self.deaths)
        self._process = None
        return f"{self.name} {_describe_exit(code)} and is restarted; its log is {self.log}"

    def request_stop(self) -> None:
        if self.is_alive() and self._process is not None:
            self._process.send_signal(self.stops_by)

    def stop(self, *, until: float) -> None:
        """Wait until the deadline for the requested stop, then kill the process group."""
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, until - time.monotonic()))
        kill_group(self._process.pid)
        self._process.wait()
        self._process = None


def start_guarded(
    command: list[str],
    *,
    env: Mapping[str, str],
    output: int,
    speaks: bool = False,
    death_signal: signal.Signals = signal.SIGKILL,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program that gets a signal when this process dies.

    It has its own process group, so Ctrl-C does not reach it. With `speaks`, its output goes to the console and only
    its errors to the log. Other options are those of `subprocess.Popen`.
    """
    guard = [sys.executable, "-I", processes.__file__, str(os.getpid()), str(int(death_signal))]
    return subprocess.Popen(  # noqa: S603 (the supervisor's own list of programs)
        [*guard, *command],
        env=dict(env),
        cwd=paths.BASE,
        stdin=subprocess.DEVNULL,
        stdout=None if speaks else output,
        stderr=output,
        start_new_session=True,
        **options,
    )


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _describe_exit(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def last_log_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def rotate_log(log: Path) -> None:
    """Copy a full log to `.old.log`, replacing the previous one, and empty it. A running program keeps writing to the
    same file, at its end. Lines that it writes during the last moment of the copy may be lost."""
    if not log.exists() or log.stat().st_size <= MAX_LOG_BYTES:
        return
    with log.open("rb") as full, log.with_suffix(".old.log").open("wb") as old:
        os.fchmod(old.fileno(), 0o600)
        shutil.copyfileobj(full, old)
    os.truncate(log, 0)


class StopRequested(BaseException):
    """A signal asked the process to stop."""


def print_line(text: str) -> None:
    with contextlib.suppress(OSError):  # the reader of our output may be gone; the platform continues
        print(text, flush=True)


def watch_forever(started: list[SupervisedChild], *, once_settled: Callable[[], None] = lambda: None) -> None:
    """Restart programs that die. `once_settled` is called when the programs have run for a while."""
    is_settled = False
    while True:
        restart_dead(started)
        _wait_for_death(started)
        if not is_settled and all(program.is_alive() for program in started):
            is_settled = True
            once_settled()
        for program in started:
            rotate_log(program.log)


def _wait_for_death(started: list[SupervisedChild]) -> None:
    """Sleep until a program dies or the logs are to be checked; only a moment if a program is dead or the system cannot
    report deaths."""
    with contextlib.ExitStack() as opened:
        handles = []
        with contextlib.suppress(OSError, AttributeError):  # Linux 5.3 has these handles, macOS has not
            for program in started:
                handles.append(os.pidfd_open(program.pid))
                opened.callback(os.close, handles[-1])
        is_complete = len(handles) == len(started)
        select.select(handles if is_complete else [], [], [], LOG_CHECK_INTERVAL if is_complete else POLL_INTERVAL)


def restart_dead(started: list[SupervisedChild]) -> None:
    for program in started:
        if happened := program.restart_if_dead():
            print_line(happened)


def stop_children(started: list[SupervisedChild], *, last: Collection[str] = ()) -> None:
    """Stop the programs, those named `last` after the others. A second stop signal kills all of them."""
    is_urgent: list[bool] = []
    _on_stop_signal(lambda: is_urgent.append(True))
    for group in (
        [program for program in started if program.name not in last],
        [program for program in started if program.name in last],
    ):
        ends = time.monotonic() + STOP_TIMEOUT
        for program in group:
            program.request_stop()
        for program in group:
            program.stop(until=0.0 if is_urgent else ends)


def install_stop_handlers() -> None:
    def raise_stop() -> None:
        raise StopRequested

    _on_stop_signal(raise_stop)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # a pipe must not buffer lines


def _on_stop_signal(act: Callable[[], object]) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        act()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handle)
