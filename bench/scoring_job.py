"""Score a million steps with the scoring job: `python -m bench.scoring --job [--steps 1000000]`.

With REDIS_URL, the platform is a web server and a Celery worker with two processes, on the server of DATABASE_URL;
otherwise it is `./run`'s supervisor with its own broker and worker. A lead starts the job. Sixteen raters, who wait 0.3
s before each request, work before and during it. At two fifths of the job, the worker is killed with SIGKILL, and
restarted as a container would be. At the end every trace has exactly one score.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import submission_load, submission_server
from bench.submission_load import STEPS, TOKEN, ThinkingHttpRater

RATERS, SECONDS = 16, 10.0
KILLED_AT = 0.4
LONGEST = 1800.0

Pids = Callable[[], list[int]]


def measure(n_steps: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="bench-scoring-"))
    try:
        with submission_server.create_database(folder) as environment:
            environment |= {"STEPMARK_LOG_LEVEL": "WARNING"}
            users = submission_server.fill_database(environment, n_steps // STEPS, RATERS, program="bench.scoring_fill")
            with _platform(environment, folder) as place:
                return _run(place, environment, users, n_steps)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class ScoringPlatform:
    """A running platform: its port, its worker's processes, and how to restart them."""

    def __init__(self, port: int, worker: Pids, come_back: Callable[[], None]) -> None:
        self.port, self.worker, self.come_back = port, worker, come_back
        self.spent: dict[int, float] = {}
        self.highest = 0.0

    def look(self) -> None:
        """Return the worker's processor time and memory, before it is killed."""
        pids = self.worker()
        self.spent |= {pid: submission_server.process_cpu_seconds(pid) for pid in pids}
        self.highest = max(self.highest, sum(map(_memory, pids)))


@contextlib.contextmanager
def _platform(environment: dict[str, str], folder: Path) -> Iterator[ScoringPlatform]:
    if os.environ.get("REDIS_URL"):
        workers = [_worker(environment, folder)]
        with submission_server.run_web_server(environment, folder) as server:
            try:
                yield ScoringPlatform(
                    server.port, lambda: _family(workers[-1].pid), lambda: workers.append(_worker(environment, folder))
                )
            finally:
                workers[-1].terminate()
                workers[-1].wait(timeout=60)
        return
    with _supervised(environment, folder) as (port, pid):
        yield ScoringPlatform(port, lambda: _named(pid, "worker"), lambda: None)


def _worker(environment: dict[str, str], folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "celery", "--app", "config.celery", "worker", "--concurrency", "2", "--beat"]
    command += ["--schedule", str(folder / "beat"), "--pidfile", str(folder / f"{time.time()}.pid")]
    with (folder / "worker.log").open("ab") as log:
        return subprocess.Popen(command, env=environment, cwd=submission_server.ROOT, stdout=log, stderr=log)


@contextlib.contextmanager
def _supervised(environment: dict[str, str], folder: Path) -> Iterator[tuple[int, int]]:
    command = [sys.executable, "-P", "-m", "supervisor", "--port", "0", "--data", str(folder), "--no-demo"]
    environment = {**environment, "PYTHONPATH": str(submission_server.ROOT)}
    environment.pop("REDIS_URL", None)
    process = subprocess.Popen(command, env=environment, cwd=submission_server.ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "ready at" in line)
        yield int(line.rpartition(":")[2].strip(" /\n")), process.pid
    finally:
        process.terminate()
        process.wait(timeout=60)


def _run(
    place: ScoringPlatform, environment: dict[str, str], users: dict[str, list[str]], n_steps: int
) -> dict[str, float]:
    submission_load.run_raters(place.port, users["sessions"], seconds=3)  # connections, plans, caches
    alone = submission_load.run_raters(place.port, users["sessions"], seconds=SECONDS, who=ThinkingHttpRater)
    _press_the_button(place.port, users["lead"][0])
    began = time.perf_counter()
    _follow(place, environment, lambda job: job["done"] > 0, began)
    beside = submission_load.run_raters(place.port, users["sessions"], seconds=SECONDS, who=ThinkingHttpRater)
    _follow(place, environment, lambda job: job["done"] >= KILLED_AT * job["total"], began)
    for pid in place.worker():
        os.kill(pid, signal.SIGKILL)
    killed, kept = time.perf_counter(), _jobs(environment)["done"]
    place.come_back()
    _follow(place, environment, lambda job: job["done"] > kept, began)
    away = time.perf_counter() - killed
    _follow(place, environment, lambda job: job["states"] == {"done"}, began)
    seconds = time.perf_counter() - began
    scored = _scored(environment)
    assert scored == (n_steps // STEPS,) * 2, scored
    return {
        "steps scored by the job": float(scored[0] * STEPS),
        "of the job, seconds": seconds,
        "of it after kill -9, seconds": away,
        "of the job, steps a second": scored[0] * STEPS / (seconds - away),
        "worker, processor seconds": sum(place.spent.values()),
        "worker, MB": place.highest,
        **_waits("before", alone),
        **_waits("during", beside),
    }


def _waits(when: str, load: dict[str, Any]) -> dict[str, float]:
    assert not load["errors"], load
    return {f"{name} p95 {when}, ms": load["waits_ms"][name]["p95"] for name in submission_load.WAITS}


def _press_the_button(port: int, session: str) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/projects/bench/models/score", data=b"", method="POST")
    request.add_header("Cookie", f"sessionid={session}; csrftoken={TOKEN}")
    request.add_header("X-CSRFToken", TOKEN)
    urllib.request.urlopen(request, timeout=60).read()


def _follow(
    place: ScoringPlatform, environment: dict[str, str], until: Callable[[dict[str, Any]], bool], began: float
) -> None:
    while not until(_jobs(environment)):
        if time.perf_counter() - began > LONGEST:
            raise SystemExit(f"the job did not finish in time: {_jobs(environment)}")
        place.look()
        time.sleep(0.5)


def _jobs(environment: dict[str, str]) -> dict[str, Any]:
    rows = _ask(environment, "SELECT state, done, total FROM jobs_job WHERE kind = 'prm.score'")
    if any(state == "failed" for state, _, _ in rows):
        raise SystemExit("a job failed: " + str(_ask(environment, "SELECT failure FROM jobs_job")))
    total = sum(total or 0 for _, _, total in rows)
    return {"states": {state for state, _, _ in rows}, "done": sum(row[1] for row in rows), "total": total or 10**9}


def _scored(environment: dict[str, str]) -> tuple[int, int]:
    """Return the number of scores and of scored traces."""
    (found,) = _ask(environment, "SELECT count(*), count(DISTINCT trace_id) FROM prm_score")
    return int(found[0]), int(found[1])


def _ask(environment: dict[str, str], sql: str) -> list[Any]:
    import psycopg

    with psycopg.connect(environment["DATABASE_URL"]) as link:
        return link.execute(sql.encode()).fetchall()


def _family(pid: int) -> list[int]:
    """Return a process with all its descendants; an empty list if it has ended."""
    with contextlib.suppress(FileNotFoundError):
        return [pid, *(each for child in submission_server.child_pids(pid) for each in _family(child))]
    return []


def _named(pid: int, name: str) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return [each for each in _family(pid) if name in Path(f"/proc/{each}/comm").read_text()]
    return []


def _memory(pid: int) -> float:
    """Return the proportional set size of a process in MB."""
    with contextlib.suppress(FileNotFoundError, PermissionError, ProcessLookupError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(next(line for line in rollup.splitlines() if line.startswith("Pss:")).split()[1]) / 1024
    return 0.0
