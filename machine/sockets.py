"""Where the embedded broker listens: a Unix socket whose name the kernel takes."""

import hashlib
import os
import tempfile
from pathlib import Path

# The kernel keeps 108 bytes for the name of a Unix socket, macOS 104.
LONGEST_SOCKET_NAME = 100


def socket_of(folder: Path) -> Path:
    """The broker's socket: in the data folder, or under a short name of its own where that would be too long."""
    inside = folder / "valkey.sock"
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_NAME:
        return inside
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"stepmark-{os.getuid()}-{digest}" / "valkey.sock"
