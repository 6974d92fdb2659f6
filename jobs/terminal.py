"""Progress on a terminal: one line that is written over, with the time that is left at the pace so far."""

import time
from collections.abc import Callable
from typing import Protocol

WIDTH = 24
_PAUSE = 0.1  # seconds between two drawings: more often nobody sees, and it costs
_PLAIN = str  # where commands write, everything is red unless another style is named
_MARK = "\r\x1b[2K"


class TerminalStream(Protocol):
    def isatty(self) -> bool: ...
    def write(self, text: str, style_func: Callable[[str], str], ending: str, /) -> object: ...


class ProgressBar:
    """Where nobody looks, in a script or a log, it draws nothing."""

    def __init__(self, stream: TerminalStream) -> None:
        self._stream = stream
        self._is_seen = stream.isatty()
        self._words = ""
        self._began: tuple[float, int] | None = None
        self._drawn_at = 0.0

    def show(self, words: str, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if words != self._words:  # another stretch of the way, counted in something else
            self._words, self._began = words, None
        if total and self._began is None:
            self._began = now, done
        if self._is_seen and (now - self._drawn_at >= _PAUSE or done == total):
            self._drawn_at = now
            self._stream.write(
                _MARK + format_progress_line(words, done, total, self._left(now, done, total)), _PLAIN, ""
            )

    def clear(self) -> None:
        """The line is free for what comes next."""
        if self._is_seen:
            self._stream.write(_MARK, _PLAIN, "")

    def _left(self, now: float, done: int, total: int | None) -> float | None:
        if not total or self._began is None or done <= self._began[1]:
            return None
        began, before = self._began
        return (now - began) / (done - before) * (total - done)


def format_progress_line(words: str, done: int, total: int | None, left: float | None) -> str:
    if not total:
        return f"{words} {done:,}"
    full = WIDTH * done // total
    bar = "█" * full + "░" * (WIDTH - full)
    time_left = "" if left is None else f"  {_format_duration(left)} left"
    return f"{words} {bar} {done:,} / {total:,} ({100 * done // total} %){time_left}"


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
