"""The data folder is held by one, and the socket has a name that fits."""

import os
from pathlib import Path

import pytest

from supervisor import Trouble, place


def test_socket_of_lies_in_the_data_folder() -> None:
    assert place.socket_of(Path("/srv/stepmark")) == Path("/srv/stepmark/valkey.sock")


def test_socket_of_is_short_enough_for_the_kernel_however_deep_the_folder_is() -> None:
    deep, deeper = Path("/srv") / ("d" * 120), Path("/srv") / ("e" * 120)
    assert len(os.fsencode(place.socket_of(deep))) <= place.LONGEST_SOCKET_NAME
    assert place.socket_of(deep) == place.socket_of(deep)
    assert place.socket_of(deep) != place.socket_of(deeper)


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
