"""Measure an import and its undo as a user runs them: `python -m bench.import_command [--traces N]`, on the server of
DATABASE_URL.

The command `manage.py import_traces` imports a file of 12 steps of 250 characters per trace into an empty database. The
same rows are then copied with plain COPYs into the same tables of another empty database, with the same keys and
indexes. Finally, `manage.py undo_import` undoes the import. Steps per processor-second are given twice: of the command
alone, which has the bar, and of the command and PostgreSQL. The work of other programs is printed: with more than a
quarter of the machine, the clock says nothing, and only processor time and ratios count.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from bench import databases, submission_server

STEPS, STEP_LENGTH = 12, 250
BOUNDS = {"share_of_copy": 0.5, "steps_per_cpu_second": 80_000, "memory_mb": 250, "undo_seconds": 30}
BUSY = 0.25
WORDS = [
    "we",
    "can",
    "see",
    "that",
    "the",
    "value",
    "of",
    "$x^2",
    "+",
    "3$",
    "must",
    "hold",
    "and",
    "both",
    "numbers",
    "are",
    "even",
    "therefore",
    "the",
    "sum",
    "is",
    "equal",
    "to",
]
# Parents first; those before the first large table are copied before the clock starts.
_SMALL_TABLES = ("project", "source", "provenance", "lane")
_LARGE_TABLES = ("problem", "trace", "step", "option", "queueentry")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class WorkDone:
    seconds: float
    client_cpu: float  # of the command
    server_cpu: float  # of all of PostgreSQL's processes
    others_share: float  # of the machine
    memory_mb: int = 0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--traces", type=int, default=100_000)
    traces = arguments.parse_args().traces
    with tempfile.TemporaryDirectory() as name, submission_server.create_database(Path(name)) as environment:
        folder = Path(name)
        environment["STEPMARK_LOG_LEVEL"] = "ERROR"
        environment["PYTHONDONTWRITEBYTECODE"] = ""  # the migration compiles the modules; users have compiled ones
        file = folder / "traces.jsonl"
        with file.open("wb") as stream:
            stream.writelines(_make_lines(traces))
        _manage(environment, "migrate", "--verbosity", "0")
        with _clone_database(environment["DATABASE_URL"]) as empty:
            imported = _measure_command(environment, "import_traces", str(file), "--project", "bench")
            copied = _measure_copy(environment["DATABASE_URL"], empty, folder)
        effect, undone = _measure_undo(environment)
    _print_report(traces, imported, copied, undone, effect)


def _make_lines(n: int) -> Iterator[bytes]:
    words = random.Random(20261119)
    for number in range(n):
        steps = [f"{number} {at}: {' '.join(words.choices(WORDS, k=64))}"[:STEP_LENGTH] for at in range(STEPS)]
        problem = f"What is {number} + {number * 7}? {' '.join(words.choices(WORDS, k=20))}"
        yield json.dumps({"problem": problem, "answer": str(number * 8), "steps": steps}).encode() + b"\n"


@contextlib.contextmanager
def _clone_database(url: str) -> Iterator[str]:
    """Create an empty database like this one, and yield its address."""
    parts = urlsplit(url)
    name = parts.path.removeprefix("/")
    with _connect(databases.server()) as server:
        server.execute(f'CREATE DATABASE "{name}_copy" TEMPLATE "{name}"')
        try:
            yield urlunsplit(parts._replace(path=f"/{name}_copy"))
        finally:
            server.execute(f'DROP DATABASE "{name}_copy" WITH (FORCE)')


def _connect(url: str) -> Any:
    import psycopg

    return psycopg.connect(url, autocommit=True)


def _manage(environment: dict[str, str], *words: str) -> resource.struct_rusage:
    """Run a command, and return the time and resources that it used."""
    command = [sys.executable, "manage.py", *words]
    process = subprocess.Popen(command, env=environment, cwd=submission_server.ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"manage.py {words[0]} failed")
    return usage


def _measure_command(environment: dict[str, str], *words: str) -> WorkDone:
    with _connect(environment["DATABASE_URL"]) as link:
        meter = _Meter(link)
        usage = _manage(environment, *words)
        return meter.read(usage.ru_utime + usage.ru_stime, memory_mb=usage.ru_maxrss // 1024)


def _measure_copy(source: str, target: str, folder: Path) -> WorkDone:
    with _connect(source) as one, _connect(target) as other:
        for table in (*_SMALL_TABLES, *_LARGE_TABLES):
            with one.cursor().copy(f"COPY ({_selection(one, table)}) TO STDOUT") as copy:
                (folder / table).write_bytes(b"".join(copy))
        for table in _SMALL_TABLES:
            _copy_into(other, table, folder / table)
        meter, before = _Meter(other), time.process_time()
        for table in _LARGE_TABLES:
            _copy_into(other, table, folder / table)
        return meter.read(time.process_time() - before)


def _columns(link: Any, table: str) -> str:
    rows = link.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attgenerated = ''"
        " AND NOT attisdropped ORDER BY attnum",
        [f"labeling_{table}"],
    )
    return ", ".join(f'"{name}"' for (name,) in rows)


def _selection(link: Any, table: str) -> str:
    return f"SELECT {_columns(link, table)} FROM labeling_{table} ORDER BY id"


def _copy_into(link: Any, table: str, file: Path) -> None:
    with (
        link.cursor().copy(f"COPY labeling_{table} ({_columns(link, table)}) FROM STDIN") as copy,
        file.open("rb") as rows,
    ):
        while piece := rows.read(1 << 20):
            copy.write(piece)


def _measure_undo(environment: dict[str, str]) -> tuple[float, WorkDone]:
    """Return after how many seconds the undo took effect, and what the whole undo used."""
    effects: list[float] = []
    is_over = threading.Event()
    with _connect(environment["DATABASE_URL"]) as link:
        ((source,),) = link.execute("SELECT id FROM labeling_source").fetchall()
        began = time.perf_counter()

        def watch() -> None:
            for _ in itertools.takewhile(lambda _: not is_over.wait(0.1), itertools.count()):
                if link.execute("SELECT 1 FROM labeling_source WHERE undone_at IS NOT NULL").fetchall():
                    effects.append(time.perf_counter() - began)
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        done = _measure_command(environment, "undo_import", str(source), "--project", "bench")
        is_over.set()
        watcher.join()
        ((left,),) = link.execute("SELECT count(*) FROM labeling_trace").fetchall()
    if left or not effects:
        raise SystemExit("the undo left traces")
    return effects[0], done


class _Meter:
    """Counts the time, the processor time of PostgreSQL, and that of other programs since it was made."""

    def __init__(self, link: Any) -> None:
        ((backend,),) = link.execute("SELECT pg_backend_pid()").fetchall()
        self._postmaster = int(Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1])
        self._began, self._server, self._machine = time.perf_counter(), self._server_cpu(), _machine_cpu()

    def read(self, client_cpu: float, *, memory_mb: int = 0) -> WorkDone:
        seconds, server = time.perf_counter() - self._began, self._server_cpu() - self._server
        others = _machine_cpu() - self._machine - client_cpu - server
        return WorkDone(seconds, client_cpu, server, max(others, 0) / seconds / (os.cpu_count() or 1), memory_mb)

    def _server_cpu(self) -> float:
        fields = Path(f"/proc/{self._postmaster}/stat").read_text().rpartition(")")[2].split()
        own_and_ended = sum(map(int, fields[11:15])) / _TICKS
        return own_and_ended + sum(
            map(submission_server.process_cpu_seconds, submission_server.child_pids(self._postmaster))
        )


def _machine_cpu() -> float:
    user, nice, system, _idle, _wait, interrupts, soft, *_ = (
        int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + interrupts + soft) / _TICKS


def _print_report(traces: int, imported: WorkDone, copied: WorkDone, undone: WorkDone, effect: float) -> None:
    steps = traces * STEPS
    busiest = max(imported.others_share, copied.others_share, undone.others_share)
    figures: dict[str, Any] = {
        "traces": traces,
        "seconds": round(imported.seconds, 1),
        "steps_per_second": round(steps / imported.seconds),
        "steps_per_cpu_second": round(steps / imported.client_cpu),
        "steps_per_cpu_second_with_postgresql": round(steps / (imported.client_cpu + imported.server_cpu)),
        "client_cpu": round(imported.client_cpu, 1),
        "server_cpu": round(imported.server_cpu, 1),
        "copy_seconds": round(copied.seconds, 1),
        "copy_server_cpu": round(copied.server_cpu, 1),
        "share_of_copy": round(copied.seconds / imported.seconds, 2),
        "memory_mb": imported.memory_mb,
        "undo_effect_seconds": round(effect, 1),
        "undo_seconds": round(undone.seconds, 1),
        "undo_client_cpu": round(undone.client_cpu, 1),
        "undo_server_cpu": round(undone.server_cpu, 1),
        "others_share": round(busiest, 2),
    }
    judged: dict[str, Callable[[float], bool]] = {
        "share_of_copy": lambda value: value >= BOUNDS["share_of_copy"],
        "steps_per_cpu_second": lambda value: value >= BOUNDS["steps_per_cpu_second"],
        "memory_mb": lambda value: value <= BOUNDS["memory_mb"],
        "undo_seconds": lambda value: value <= BOUNDS["undo_seconds"],
    }
    for name, value in figures.items():
        bar = f"  (bar {BOUNDS[name]:,})" if name in BOUNDS else ""
        print(f"{name:>36}  {value}{bar}")
    by_clock = {"share_of_copy", "undo_seconds"} if busiest > BUSY else set()
    passed = {name: "not measured" if name in by_clock else judge(figures[name]) for name, judge in judged.items()}
    print(json.dumps({"bench": "import command", "passed": passed, **figures}))


if __name__ == "__main__":
    main()
