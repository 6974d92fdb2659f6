"""Show progress in a terminal: one line, with the estimated remaining time."""

import time
from collections.abc import Callable
from typing import Protocol

BAR_WIDTH = 24
_REDRAW_INTERVAL = 0.1  # seconds
_PLAIN = str  # the style; without it, Django writes to stderr in red
_CLEAR_LINE = "\r\x1b[2K"


class TerminalStream(Protocol):
    def isatty(self) -> bool: ...
    def write(self, text: str, style_func: Callable[[str], str], ending: str, /) -> object: ...


class ProgressBar:
    """A progress bar that draws nothing if the stream is not a terminal."""

    def __init__(self, stream: TerminalStream) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._label = ""
        self._start: tuple[float, int] | None = None
        self._drawn_at = 0.0

    def show(self, label: str, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if label != self._label:  # another phase, which counts other things
            self._label, self._start = label, None
        if total and self._start is None:
            self._start = now, done
        if self._is_terminal and (now - self._drawn_at >= _REDRAW_INTERVAL or done == total):
            self._drawn_at = now
            self._stream.write(
                _CLEAR_LINE + format_progress_line(label, done, total, self._estimate_remaining(now, done, total)),
                _PLAIN,
                "",
            )

    def clear(self) -> None:
        """Clear the line for other output."""
        if self._is_terminal:
            self._stream.write(_CLEAR_LINE, _PLAIN, "")

    def _estimate_remaining(self, now: float, done: int, total: int | None) -> float | None:
        if not total or self._start is None or done <= self._start[1]:
            return None
        started_at, done_before = self._start
        return (now - started_at) / (done - done_before) * (total - done)


def format_progress_line(label: str, done: int, total: int | None, remaining: float | None) -> str:
    if not total:
        return f"{label} {done:,}"
    full = BAR_WIDTH * done // total
    bar = "█" * full + "░" * (BAR_WIDTH - full)
    time_left = "" if remaining is None else f"  {_format_duration(remaining)} left"
    return f"{label} {bar} {done:,} / {total:,} ({100 * done // total} %){time_left}"


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
