"""The line that shows how far a command is."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from jobs import terminal


class Screen(io.StringIO):
    def __init__(self, *, is_seen: bool) -> None:
        super().__init__()
        self.is_seen = is_seen

    def isatty(self) -> bool:
        return self.is_seen

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
def test_line_shows_how_far_and_how_long(done: int, total: int | None, left: float | None, expected: str) -> None:
    assert terminal.format_progress_line("Reading:", done, total, left) == expected


@pytest.mark.parametrize("is_seen", [True, False])
def test_bar_draws_only_where_somebody_looks(is_seen: bool) -> None:
    screen = Screen(is_seen=is_seen)
    bar = terminal.ProgressBar(screen)
    bar.show("Reading:", 0, 10)
    bar.show("Reading:", 10, 10)
    bar.clear()
    assert ("Reading: ████████████████████████ 10 / 10 (100 %)" in screen.getvalue()) is is_seen
    assert bool(screen.getvalue()) is is_seen


def test_bar_begins_anew_with_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds for all bytes say nothing of how long a record takes."""
    screen, now = Screen(is_seen=True), [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    bar = terminal.ProgressBar(screen)
    for at, words, done in (
        (0.0, "Looking:", 0),
        (10.0, "Looking:", 100),
        (11.0, "Reading:", 10),
        (12.0, "Reading:", 20),
    ):
        now[0] = at
        bar.show(words, done, 100)
    assert screen.getvalue().endswith("20 / 100 (20 %)  0:08 left")
