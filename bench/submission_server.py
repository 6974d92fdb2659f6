"""The filled database and the web server for `bench.submission`."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import urlopen

from bench import databases

ROOT = Path(__file__).resolve().parents[1]
TICKS = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def create_database(folder: Path) -> Iterator[dict[str, str]]:
    """Create a database on the server of DATABASE_URL and a data folder, and yield their environment variables."""
    environment = {**os.environ, "STEPMARK_DATA": str(folder), "SECRET_KEY": secrets.token_hex(25)}
    environment["STEPMARK_RATE_LIMIT_FACTOR"] = "0"  # simulated raters are faster than people
    url = databases.server()
    name = f"bench_cycle_{os.getpid()}"
    parts = urlsplit(url)
    _administer(url, f'CREATE DATABASE "{name}"')
    try:
        yield environment | {"DATABASE_URL": urlunsplit(parts._replace(path=f"/{name}"))}
    finally:
        _administer(url, f'DROP DATABASE "{name}" WITH (FORCE)')


def _administer(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as link:
        link.execute(statement.encode())


def analyze_database(environment: dict[str, str]) -> None:
    """Run VACUUM and ANALYZE now, instead of waiting for autovacuum."""
    import psycopg

    with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as link:
        link.execute("ANALYZE")


def fill_database(
    environment: dict[str, str], traces: int, raters: int, *, program: str = "bench.submission_fill"
) -> dict[str, list[str]]:
    """Migrate and fill the database in a separate process with its own settings."""
    done = subprocess.run(
        [sys.executable, "-m", program, str(traces), str(raters)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    sessions: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return sessions


class WebServerProcess:
    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.process, self.port = process, port

    def cpu_seconds(self) -> dict[str, float]:
        web = [self.process.pid, *child_pids(self.process.pid)]
        return {"web": sum(map(process_cpu_seconds, web)), "database": _database_cpu()}


@contextlib.contextmanager
def run_web_server(environment: dict[str, str], folder: Path) -> Iterator[WebServerProcess]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "--config", "config/gunicorn.py", "--bind", f"127.0.0.1:{port}"]
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen([*command, "config.wsgi"], env=environment, cwd=ROOT, stdout=log, stderr=log)
    try:
        wait_for_port(port, process, folder / "web.log")
        yield WebServerProcess(process, port)
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{port}/health/live", timeout=2):
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"the web server did not start:\n{log.read_text()[-3000:]}")


def start_bulk_import(environment: dict[str, str], seconds: float) -> Callable[[], float]:
    """Start a bulk import. Calling the result waits for its end and returns steps per second."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.submission_import", str(seconds)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )

    def ended() -> float:
        output, _ = process.communicate(timeout=120)
        return float(json.loads(output.splitlines()[-1])["steps_per_second"])

    return ended


def child_pids(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def process_cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process with its threads."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _database_cpu() -> float:
    """Return the CPU time of all PostgreSQL processes on this machine; nothing else should use them."""
    total = 0.0
    for name in Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, PermissionError, ProcessLookupError):
            if name.name.isdecimal() and (name / "comm").read_text().strip() == "postgres":
                total += process_cpu_seconds(int(name.name))
    return total
