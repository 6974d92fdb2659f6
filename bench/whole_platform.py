"""Start the whole platform with `./run` in a temporary folder, and measure all of its processes."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_TICKS = os.sysconf("SC_CLK_TCK")
_READY = "Stepmark is ready at "


class WholePlatform:
    """A running `./run`."""

    def __init__(self, process: "subprocess.Popen[str]", data: Path, url: str) -> None:
        self.process, self.data, self.url = process, data, url

    def pids(self) -> list[int]:
        """Return the supervisor and all processes below it."""
        children: dict[int, list[int]] = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and (fields := _stat_fields(int(folder.name))):
                children.setdefault(int(fields[1]), []).append(int(folder.name))
        found = [self.process.pid]
        for pid in found:
            found += children.get(pid, [])
        return found

    def processor_seconds(self) -> dict[str, float]:
        """Return the processor time of each kind of process so far, with that of processes which have ended."""
        spent: dict[str, float] = {}
        for pid in self.pids():
            kind = _kind_of(pid)
            spent[kind] = spent.get(kind, 0.0) + _processor_seconds(pid)
        return spent

    def memory(self) -> dict[str, float]:
        """Return the megabytes of each kind of process, with shared memory counted once."""
        held: dict[str, float] = {}
        for pid in self.pids():
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                kind = _kind_of(pid)
                held[kind] = held.get(kind, 0.0) + next(int(x.split()[1]) for x in lines if x.startswith("Pss:")) / 1024
        return held


@contextlib.contextmanager
def running_platform(*options: str, environment: Mapping[str, str] | None = None) -> Iterator[WholePlatform]:
    """Run `./run` in a folder of its own, without the variables of this environment, until the block ends."""
    ours = ("STEPMARK_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    command = [str(ROOT / "run"), "--port", "0", "--data", str(folder / "data"), *options]
    process = subprocess.Popen(
        command, env={**clean, **(environment or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield WholePlatform(process, folder / "data", _wait_for_url(process))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def run_module(platform: WholePlatform, name: str, *arguments: str) -> str:
    """Run a module on the platform's database, and return what it prints."""
    environment = {**os.environ, "STEPMARK_DATA": str(platform.data), "STEPMARK_LOG_LEVEL": "ERROR"}
    for variable in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY"):
        environment.pop(variable, None)
    command = [sys.executable, "-m", name, *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def _wait_for_url(process: "subprocess.Popen[str]") -> str:
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        if line.startswith(_READY):
            return line.removeprefix(_READY).strip()
    raise SystemExit("".join(lines))


def _kind_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        return {"postgres": "database", "valkey-server": "broker"}.get(name, name.removeprefix("stepmark-"))
    return "ended"


def _stat_fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process with its ended threads and children. Its own comes from the clock of the
    process, which counts nanoseconds; that of ended children is counted in ticks."""
    fields = _stat_fields(pid)
    if not fields:
        return 0.0
    ended = (int(fields[13]) + int(fields[14])) / _TICKS
    with contextlib.suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2) + ended
    return ended


@dataclass(frozen=True)
class MachineLoad:
    """The processor time of the whole machine and of this process so far."""

    busy: float
    own: float
    at: float

    @classmethod
    def read(cls) -> "MachineLoad":
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(
            int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        )
        own = time.process_time()
        return cls((user + nice + system + irq + softirq + steal) / _TICKS, own, time.perf_counter())

    def others_share(self, later: "MachineLoad", measured: float) -> float:
        """Return the share of all cores that other programs took, given the processor time of the measured ones."""
        others = later.busy - self.busy - (later.own - self.own) - measured
        return max(0.0, others / ((later.at - self.at) * (os.cpu_count() or 1)))
