"""Restart programs that die, report it, and stop all of them in the end."""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Collection
from types import FrameType

from supervisor.child import SupervisedChild

STOP_TIMEOUT = 10.0


class StopRequested(BaseException):
    """A signal asked the process to stop."""


def print_line(text: str) -> None:
    with contextlib.suppress(OSError):  # the reader of our output may be gone; the platform continues
        print(text, flush=True)


def watch_forever(started: list[SupervisedChild]) -> None:
    while True:
        restart_dead(started)
        time.sleep(0.25)


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
