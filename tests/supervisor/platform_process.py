"""Start the platform with `./run`, and inspect its processes."""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import threading
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

BASE = Path(__file__).resolve().parents[2]
PATIENCE = 150.0  # an upper bound for waiting, not an expected time


def clean_environment() -> dict[str, str]:
    """Return the environment without variables of the platform and without rate limits."""
    ours = ("STEPMARK_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_", "PYTHONPATH", "OPENBLAS_")
    others = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**others, "STEPMARK_RATE_LIMIT_FACTOR": "0"}  # simulated people are faster than people


def start_platform(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(BASE / "run"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=clean_environment(),
    )


def run_supervisor(*arguments: str) -> tuple[int, str]:
    process = start_platform(*arguments)
    output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output


@dataclass
class PlatformProcess:
    """One running `./run`."""

    data: Path
    process: subprocess.Popen[str]
    output: list[str] = field(default_factory=list)
    _lines: "queue.Queue[str]" = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout
        with self.process.stdout:
            for line in self.process.stdout:
                self._lines.put(line.rstrip("\n"))
        self._lines.put("")

    def wait_for(self, start_of_line: str) -> str:
        while True:
            line = self._lines.get(timeout=PATIENCE)
            self.output.append(line)
            if line.startswith(start_of_line):
                return line
            assert line or self.process.poll() is None, f"the platform ended early: {self.output}"

    @property
    def url(self) -> str:
        return next(line for line in self.output if line.startswith("Stepmark is ready at")).split()[-1]

    def page(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return str(answer.read().decode())

    def family(self) -> dict[int, str]:
        """Find all processes of this data folder except the supervisor. PostgreSQL's have its cluster as their working
        directory; the others have the folder in their environment."""
        mark, cluster = f"STEPMARK_DATA={self.data}".encode(), str(self.data / "postgresql")
        return {pid: command for pid, command, env, at in _processes() if mark in env.split(b"\0") or at == cluster}

    def member(self, word: str) -> int:
        """Return the lowest id of processes with this word in their name or command, or 0."""
        return min((pid for pid, command in self.family().items() if word in command), default=0)

    def megabytes(self) -> float:
        """Return the memory of all processes and the supervisor, with shared memory counted once."""
        held = 0
        for pid in [self.process.pid, *self.family()]:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            held += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return held / 1024

    def end(self) -> None:
        """Kill all processes that are still running."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def running_platform(data: Path, *arguments: str) -> PlatformProcess:
    platform = PlatformProcess(data, start_platform("--port", "0", "--data", str(data), *arguments))
    try:
        platform.wait_for("Stepmark is ready at")
    except BaseException:
        platform.end()
        raise
    return platform


def make_first_start(data: Path) -> None:
    """Start a platform without the demo on an empty folder, and stop it."""
    draft = data.with_name("draft")
    platform = running_platform(draft, "--no-demo")
    platform.process.terminate()
    assert platform.process.wait(PATIENCE) == 0
    draft.rename(data)


def copy_data(started: Path, data: Path) -> None:
    """Copy the data folder of a stopped platform with its owners."""
    subprocess.run(["cp", "--archive", str(started), str(data)], check=True)


def listening_on(port: int) -> socket.socket:
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    taken.bind(("127.0.0.1", port))
    taken.listen()
    return taken


def _processes() -> list[tuple[int, str, bytes, str]]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                name, env = f"{(folder / 'comm').read_text().strip()} {command}", (folder / "environ").read_bytes()
                found.append((int(folder.name), f"{name} {command}", env, os.readlink(folder / "cwd")))
        except OSError:  # the process has ended meanwhile
            continue
    return found


def commands_of_group(group: int) -> list[str]:
    """Return the names of the running processes of a group, without zombies."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        state, _, pgrp = rest.split()[:3]
        if int(pgrp) == group and state != "Z":
            found.append(name)
    return found
