"""The paths of sockets are short enough for the kernel."""

import os
from pathlib import Path

from host import socket_paths


def test_sockets_are_in_the_data_folder() -> None:
    folder = Path("/srv/stepmark")
    assert socket_paths.broker_socket_path(folder) == folder / "valkey.sock"
    assert socket_paths.database_folder(folder) == folder / "postgresql"


def test_sockets_are_in_a_short_folder_if_the_data_folder_is_deep() -> None:
    deep, deeper = Path("/srv") / ("d" * 120), Path("/srv") / ("e" * 120)
    for socket_of in (
        socket_paths.broker_socket_path,
        lambda folder: socket_paths.database_folder(folder) / socket_paths.DATABASE_SOCKET,
    ):
        assert len(os.fsencode(socket_of(deep))) <= socket_paths.MAX_SOCKET_PATH_BYTES
        assert socket_of(deep) == socket_of(deep)
        assert socket_of(deep) != socket_of(deeper)
