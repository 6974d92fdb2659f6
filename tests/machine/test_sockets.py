"""The socket has a name that fits."""

import os
from pathlib import Path

from machine import sockets


def test_socket_of_lies_in_the_data_folder() -> None:
    assert sockets.socket_of(Path("/srv/stepmark")) == Path("/srv/stepmark/valkey.sock")


def test_socket_of_is_short_enough_for_the_kernel_however_deep_the_folder_is() -> None:
    deep, deeper = Path("/srv") / ("d" * 120), Path("/srv") / ("e" * 120)
    assert len(os.fsencode(sockets.socket_of(deep))) <= sockets.LONGEST_SOCKET_NAME
    assert sockets.socket_of(deep) == sockets.socket_of(deep)
    assert sockets.socket_of(deep) != sockets.socket_of(deeper)
