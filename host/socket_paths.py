"""The paths of the Unix sockets on which the embedded servers listen. The kernel limits their length."""

import hashlib
import os
import tempfile
from pathlib import Path

# The kernel stores at most 107 bytes of a Unix socket's path; macOS stores 103.
MAX_SOCKET_PATH_BYTES = 100
# PostgreSQL chooses the name of its socket itself; clients derive it from the port.
DATABASE_SOCKET = ".s.PGSQL.5432"


def broker_socket_path(folder: Path) -> Path:
    """Return the path of the broker's socket: in the data folder, or in a short folder if that path is too long."""
    return _folder_of(folder, folder, "valkey.sock") / "valkey.sock"


def database_folder(folder: Path) -> Path:
    """Return the folder of the database's socket: the cluster itself, or a short folder if that path is too long."""
    return _folder_of(folder, folder / "postgresql", DATABASE_SOCKET)


def _folder_of(folder: Path, wanted: Path, name: str) -> Path:
    if len(os.fsencode(wanted / name)) <= MAX_SOCKET_PATH_BYTES:
        return wanted
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"stepmark-{os.getuid()}-{digest}"
