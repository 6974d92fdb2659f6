"""Run Python programs in forks of a process that has already imported the packages that Stepmark depends on.

These imports take most of the processor time of a command, a worker or a web server. Each program still reads the
modules of the project, its settings and the variables of its caller by itself. `tests.environment` starts one server
for all tests of a run. It imports when the first program is requested.

Usage: `python -P tests/command_server.py FOLDER`. The folder then contains `python`, for shells, and a socket.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

VARIABLE = "COMMAND_SERVER"  # the folder of the server
# Packages that many commands import later.
LATER_IMPORTS = (
    *("pyarrow.parquet", "scipy.sparse", "scipy.special", "sklearn.linear_model", "xml.sax.expatreader"),
    *("celery.bin.celery", "celery.bin.worker", "celery.bin.beat", "gunicorn.app.wsgiapp", "gunicorn.workers.gthread"),
)
ROOT = Path(__file__).resolve().parents[1]
# A program that a shell finds as `python`. It runs other files and options as Python does.
CLIENT = f"""\
#!{sys.executable} -IS
import os, sys
if sys.argv[1:2] not in (["manage.py"], ["-m"], ["-c"]):
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
import json, socket
with socket.socket(socket.AF_UNIX) as line:
    line.connect("SOCKET")
    socket.send_fds(line, [b"."], [0, 1, 2])
    line.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
    with line.makefile() as answers:
        answers.readline()
        sys.exit(int(answers.readline()))
"""


class ForkedProgram:
    """A program in a process group of its own: `manage.py …`, `-m MODULE …` or `-c CODE …`."""

    def __init__(self, arguments: Sequence[str], *, env: Mapping[str, str], folder: Path, output: IO[bytes]) -> None:
        self.code: int | None = None
        self.line = socket.socket(socket.AF_UNIX)
        self.line.connect(str(socket_of(Path(os.environ[VARIABLE]))))
        with open(os.devnull) as nothing:
            socket.send_fds(self.line, [b"."], [nothing.fileno(), output.fileno(), output.fileno()])
        self.line.sendall(json.dumps([list(arguments), str(folder), dict(env)]).encode() + b"\n")
        self.answers = self.line.makefile()
        self.pid = int(self.answers.readline())

    def wait(self) -> int:
        if self.code is None:
            self.code = int(self.answers.readline())
            self.answers.close()
            self.line.close()
        return self.code


def find_python() -> str:
    """Return the program to use instead of `sys.executable` in a test that is not about the start of Python."""
    return str(Path(os.environ[VARIABLE]) / "python")


def socket_of(folder: Path) -> Path:
    return folder / "commands.sock"


def accept_programs(folder: Path) -> None:
    """Return in a new process for each program, and never in the server."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(socket_of(folder)))
        server.listen(100)
        client = folder / "python"
        client.write_text(CLIENT.replace("SOCKET", str(socket_of(folder))))
        client.chmod(0o755)
        line, _ = server.accept()
        import_packages(folder)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while os.fork() != 0:
            line.close()
            line, _ = server.accept()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    become_program(line)


def import_packages(folder: Path) -> None:
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)  # no package may load the settings of the caller
    for name in (*list_modules(folder), *LATER_IMPORTS):
        with contextlib.suppress(Exception):  # some need settings
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def list_modules(folder: Path) -> list[str]:
    """Return the modules of other packages that web server and worker import."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.environ.update(DJANGO_SETTINGS_MODULE="config.settings", SECRET_KEY="test", STEPMARK_DATA=str(folder))
        sys.path.insert(0, str(ROOT))
        importlib.import_module("supervisor.preload").load_application()
        ours = {path.stem for path in ROOT.iterdir()}
        with open(writer, "w") as output:
            json.dump([name for name in sys.modules if name.partition(".")[0] not in ours], output)
        os._exit(0)
    os.close(writer)
    with open(reader) as received:
        names = list(map(str, json.load(received)))
    os.wait()
    return names


def become_program(line: socket.socket) -> None:
    """Return in the process of the program. Another process waits for it, and sends its id and its exit code."""
    _, files, _, _ = socket.recv_fds(line, 1, 3)
    with line.makefile() as received:
        arguments, folder, variables = json.loads(received.readline())
    if pid := os.fork():
        os.setpgid(pid, pid)  # here too, because the caller may kill the group at once
        with contextlib.suppress(OSError):  # the caller has ended
            line.sendall(b"%d\n" % pid)
            line.sendall(b"%d\n" % wait_for_exit(pid))
            line.recv(1)  # until the caller ends, no other process has this id
        os._exit(0)
    line.close()
    os.setpgid(0, 0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = arguments


def wait_for_exit(pid: int) -> int:
    """Return the exit code as a shell does, and leave a zombie."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended
    return ended.si_status + (0 if ended.si_code == os.CLD_EXITED else 128)


def run_program() -> None:
    first, *rest = sys.argv
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(rest[0], {"__name__": "__main__"})
    else:
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    accept_programs(Path(sys.argv[1]))
    run_program()
