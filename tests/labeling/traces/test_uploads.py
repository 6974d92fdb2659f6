"""What comes over the network is kept whole, or not at all."""

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labeling.traces import uploads
from tests.factories import NOW


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def test_keep_keeps_the_name_and_the_bytes() -> None:
    path = uploads.save_upload(name="traces.jsonl", parts=[b"{", b"}"], size=2)
    assert (path.name, path.read_bytes()) == ("traces.jsonl", b"{}")
    assert uploads.save_upload(name="traces.jsonl", parts=[b""]) != path


def test_keep_leaves_nothing_of_what_was_cut_off_or_is_too_big(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies() -> Iterator[bytes]:
        yield b"{"
        raise ConnectionResetError

    with pytest.raises(uploads.UploadCutOff):
        uploads.save_upload(name="a.jsonl", parts=[b"{"], size=2)
    with pytest.raises(ConnectionResetError):
        uploads.save_upload(name="a.jsonl", parts=dies())
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 1)
    for size in (2, None):
        with pytest.raises(uploads.UploadTooLarge):
            uploads.save_upload(name="a.jsonl", parts=[b"{", b"}"], size=size)
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
        ("数" * 100 + ".jsonl", "数" * 38 + ".jsonl"),  # a file system counts bytes
    ],
)
def test_safe_name_leads_nowhere_else(name: str, safe: str) -> None:
    assert uploads.safe_name(name) == safe


def test_forget_old_leaves_what_is_new_and_what_is_no_upload(folder: Path) -> None:
    old, new = (uploads.save_upload(name="a.jsonl", parts=[b"{}"]) for _ in range(2))
    bad_lines = folder / "imports" / "bad-lines-7.csv"
    bad_lines.touch()
    long_ago = (NOW - dt.timedelta(days=8)).timestamp()
    for path in (old.parent, bad_lines):
        os.utime(path, (long_ago, long_ago))
    os.utime(new.parent, (NOW.timestamp(), NOW.timestamp()))
    assert uploads.delete_old_uploads(now=NOW) == 1
    assert (old.exists(), new.exists(), bad_lines.exists()) == (False, True, True)
