"""The paths of sockets are short enough for the kernel."""

import os
from pathlib import Path

from machine import sockets


def test_sockets_are_in_the_data_folder() -> None:
    folder = Path("/srv/stepmark")
    assert sockets.socket_of(folder) == folder / "valkey.sock"
    assert sockets.database_folder(folder) == folder / "postgresql"


def test_sockets_are_in_a_short_folder_if_the_data_folder_is_deep() -> None:
    deep, deeper = Path("/srv") / ("d" * 120), Path("/srv") / ("e" * 120)
    for socket_of in (sockets.socket_of, lambda folder: sockets.database_folder(folder) / sockets.DATABASE_SOCKET):
        assert len(os.fsencode(socket_of(deep))) <= sockets.LONGEST_SOCKET_NAME
        assert socket_of(deep) == socket_of(deep)
        assert socket_of(deep) != socket_of(deeper)
