"""The base URL of links that commands print."""

from pathlib import Path

import pytest

from config import origin


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ("at http://127.0.0.1:8123/ (process 7)\n", "http://127.0.0.1:8123/"),
        ("", "http://127.0.0.1:8000"),
        (None, "http://127.0.0.1:8000"),
    ],
)
def test_of_finds_the_port_of_the_running_platform(tmp_path: Path, noted: str | None, expected: str) -> None:
    if noted is not None:
        (tmp_path / "supervisor.lock").write_text(noted)
    assert origin.read_noted_origin(tmp_path) == expected
