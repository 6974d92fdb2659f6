"""The data folder is held by one, and is nobody else's."""

from pathlib import Path

import pytest

from supervisor import Trouble, place


def test_hold_lets_one_in_at_a_time(tmp_path: Path) -> None:
    with (
        place.hold(tmp_path, url="http://127.0.0.1:1/"),
        pytest.raises(Trouble, match=r"in use at http://127\.0\.0\.1:1/"),
    ):
        place.hold(tmp_path, url="http://127.0.0.1:2/")
    place.hold(tmp_path, url="http://127.0.0.1:2/").close()


def test_hold_keeps_the_data_folder_from_others(tmp_path: Path) -> None:
    place.hold(tmp_path / "new", url="").close()
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
