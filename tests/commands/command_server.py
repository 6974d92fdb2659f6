"""Run `python manage.py …` in a fork of a process that has already imported the packages that Stepmark depends on.

These imports take most of the processor time of a command. Each command still reads the modules of the project, its
settings and the variables of its caller by itself. Usage: `python -P tests/commands/command_server.py SOCKET`.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path

# Packages that many commands import later.
LATER_IMPORTS = ("pyarrow.parquet", "scipy.sparse", "scipy.special", "sklearn.linear_model")
ROOT = Path(__file__).resolve().parents[2]
# A program that a shell finds as `python`. It passes commands of manage.py on, and runs everything else as Python does.
CLIENT = f"""\
#!{sys.executable} -IS
import os, sys
if sys.argv[1:2] != ["manage.py"]:
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
import json, socket
with socket.socket(socket.AF_UNIX) as line:
    line.connect("SOCKET")
    socket.send_fds(line, [b"."], [0, 1, 2])
    line.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    line.shutdown(socket.SHUT_WR)
    sys.exit(int(line.recv(8)))
"""


def write_client(path: Path, server: Path) -> None:
    path.write_text(CLIENT.replace("SOCKET", str(server)))
    path.chmod(0o755)


def accept_commands(path: str) -> None:
    """Return in a new process for each command, and never in the server."""
    for name in (*list_modules(), *LATER_IMPORTS):
        with contextlib.suppress(Exception):  # some need settings
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        while True:
            line, _ = server.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                break
            line.close()
    with line:
        become_command(line)


def list_modules() -> list[str]:
    """Return the modules of other packages that every command imports."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.environ.update(DJANGO_SETTINGS_MODULE="config.settings", SECRET_KEY="test")
        sys.path.insert(0, str(ROOT))
        importlib.import_module("django").setup()
        ours = {path.stem for path in ROOT.iterdir()}
        with open(writer, "w") as output:
            json.dump([name for name in sys.modules if name.partition(".")[0] not in ours], output)
        os._exit(0)
    os.close(writer)
    with open(reader) as received:
        names = list(map(str, json.load(received)))
    os.wait()
    return names


def become_command(line: socket.socket) -> None:
    """Return in the process of the command. Another process waits for it, and sends its exit code."""
    _, files, _, _ = socket.recv_fds(line, 1, 3)
    arguments, folder, variables = json.loads(b"".join(iter(lambda: line.recv(65536), b"")))
    if pid := os.fork():
        _, status = os.waitpid(pid, 0)
        line.sendall(str(os.waitstatus_to_exitcode(status) & 0xFF).encode())
        os._exit(0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = arguments


if __name__ == "__main__":
    accept_commands(sys.argv[1])
    runpy.run_path(sys.argv[0], run_name="__main__")
