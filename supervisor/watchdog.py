"""Looks after programs that were started, says what became of them, and stops them. It does not ask what they are."""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Collection
from types import FrameType

from supervisor.child import SupervisedChild

STOP_TIMEOUT = 10.0


class StopRequested(BaseException):
    """Somebody asked us to stop."""


def print_line(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever read what we say may have gone; the platform stays
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
    """Stop the programs, those named last after the others. A second request to stop ends all of them at once."""
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
    def tell() -> None:
        raise StopRequested

    _on_stop_signal(tell)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # what a pipe reads must not wait


def _on_stop_signal(act: Callable[[], object]) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        act()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handle)
