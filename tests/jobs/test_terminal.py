"""Progress in a terminal."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from jobs import terminal


class Screen(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str, style_func: Callable[[str], str] = str.upper, ending: str = "\n") -> Any:
        return super().write(style_func(text) + ending)


@pytest.mark.parametrize(
    ("done", "total", "left", "expected"),
    [
        (1200, None, None, "Reading: 1,200"),
        (0, 10, None, "Reading: ░░░░░░░░░░░░░░░░░░░░░░░░ 0 / 10 (0 %)"),
        (5, 10, 75.2, "Reading: ████████████░░░░░░░░░░░░ 5 / 10 (50 %)  1:15 left"),
        (10, 10, 3700, "Reading: ████████████████████████ 10 / 10 (100 %)  1:01:40 left"),
    ],
)
def test_line_shows_progress_and_remaining_time(
    done: int, total: int | None, left: float | None, expected: str
) -> None:
    assert terminal.format_progress_line("Reading:", done, total, left) == expected


@pytest.mark.parametrize("is_terminal", [True, False])
def test_bar_draws_only_in_a_terminal(is_terminal: bool) -> None:
    screen = Screen(is_terminal=is_terminal)
    bar = terminal.ProgressBar(screen)
    bar.show("Reading:", 0, 10)
    bar.show("Reading:", 10, 10)
    bar.clear()
    assert ("Reading: ████████████████████████ 10 / 10 (100 %)" in screen.getvalue()) is is_terminal
    assert bool(screen.getvalue()) is is_terminal


def test_bar_restarts_its_estimate_with_another_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for reading bytes does not predict the time for records."""
    screen, now = Screen(is_terminal=True), [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    bar = terminal.ProgressBar(screen)
    for at, label, done in (
        (0.0, "Looking:", 0),
        (10.0, "Looking:", 100),
        (11.0, "Reading:", 10),
        (12.0, "Reading:", 20),
    ):
        now[0] = at
        bar.show(label, done, 100)
    assert screen.getvalue().endswith("20 / 100 (20 %)  0:08 left")
