"""Uploads are saved completely or not at all."""

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labeling.traces import locations
from tests.factories import NOW


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def test_save_keeps_name_and_content() -> None:
    path = locations.save_upload(name="traces.jsonl", parts=[b"{", b"}"], size=2)
    assert (path.name, path.read_bytes()) == ("traces.jsonl", b"{}")
    assert locations.save_upload(name="traces.jsonl", parts=[b""]) != path


def test_save_leaves_nothing_of_an_incomplete_or_oversized_upload(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off() -> Iterator[bytes]:
        yield b"{"
        raise ConnectionResetError

    with pytest.raises(locations.UploadCutOff):
        locations.save_upload(name="a.jsonl", parts=[b"{"], size=2)
    with pytest.raises(ConnectionResetError):
        locations.save_upload(name="a.jsonl", parts=break_off())
    monkeypatch.setattr(locations, "MAX_UPLOAD_BYTES", 1)
    for size in (2, None):
        with pytest.raises(locations.UploadTooLarge):
            locations.save_upload(name="a.jsonl", parts=[b"{", b"}"], size=size)
    assert list((folder / "imports").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\traces\\a b.jsonl", "a_b.jsonl"),
        (".hidden", "hidden"),
        ("..", "traces.jsonl"),
        ("", "traces.jsonl"),
        ("x" * 300 + ".jsonl.gz", "x" * 111 + ".jsonl.gz"),
        ("数" * 100 + ".jsonl", "数" * 38 + ".jsonl"),  # the limit is in bytes
    ],
)
def test_safe_name_has_no_path_and_no_special_characters(name: str, safe: str) -> None:
    assert locations.safe_name(name) == safe


def test_delete_old_uploads_keeps_new_ones_and_other_files(folder: Path) -> None:
    old, new = (locations.save_upload(name="a.jsonl", parts=[b"{}"]) for _ in range(2))
    bad_lines = folder / "imports" / "bad-lines-7.csv"
    bad_lines.touch()
    long_ago = (NOW - dt.timedelta(days=8)).timestamp()
    for path in (old.parent, bad_lines):
        os.utime(path, (long_ago, long_ago))
    os.utime(new.parent, (NOW.timestamp(), NOW.timestamp()))
    assert locations.delete_old_uploads(now=NOW) == 1
    assert (old.exists(), new.exists(), bad_lines.exists()) == (False, True, True)
