"""The data folder is locked by one platform, and only its owner can read it."""

from pathlib import Path

import pytest

from supervisor import StartupError, paths


def test_hold_locks_the_folder(tmp_path: Path) -> None:
    with (
        paths.lock_data_folder(tmp_path, url="http://127.0.0.1:1/"),
        pytest.raises(StartupError, match=r"in use at http://127\.0\.0\.1:1/"),
    ):
        paths.lock_data_folder(tmp_path, url="http://127.0.0.1:2/")
    paths.lock_data_folder(tmp_path, url="http://127.0.0.1:2/").close()


def test_hold_keeps_the_data_folder_from_others(tmp_path: Path) -> None:
    paths.lock_data_folder(tmp_path / "new", url="").close()
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
