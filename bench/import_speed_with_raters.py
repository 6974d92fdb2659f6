"""Measure an import beside raters: `python -m bench.import_speed --raters 16 [--traces N]`.

The job's own handler imports a whole file through the runner, in a separate process. The web server runs as `./run`
starts it. The raters work over HTTP at the highest speed that the page allows: it sends at most one batch per second,
so a batch of all twelve ratings, the submit and the next claim follow each other, then a pause until the second is
over. The last line of the output is JSON.
"""

import json
import os
import resource
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import submission_load, submission_server

STEPS = 12
BETWEEN_BATCHES = 1.0  # seconds, as in static/js/work/network.js
BOUNDS = {"judge_p95_ms": 50.0, "steps_per_second": 20_000, "memory_mb": 250}


def main(raters: int, traces: int, waiting: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-import-"))
    try:
        with submission_server.create_database(folder) as environment:
            environment |= {"STEPMARK_WEB_WORKERS": "1", "STEPMARK_LOG_LEVEL": "ERROR"}
            told = submission_server.fill_database(environment, waiting, raters)
            with submission_server.run_web_server(environment, folder) as server:
                print_report(_both(environment, server.port, told["sessions"], traces), raters)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _both(environment: dict[str, str], port: int, sessions: list[str], traces: int) -> dict[str, Any]:
    """Start the raters before the job, and stop them after it."""
    command = [sys.executable, "-m", "bench.import_speed_with_raters", str(traces)]
    working = [PagePacedHttpRater(port, session, "bench", number + 1) for number, session in enumerate(sessions)]
    run_raters(working, until=time.perf_counter() + 3)
    for rater in working:
        rater.waits = {name: [] for name in submission_load.WAITS}
    with subprocess.Popen(
        command, env=environment, cwd=submission_server.ROOT, stdout=subprocess.PIPE, text=True
    ) as job:
        run_raters(working, is_over=lambda: job.poll() is not None)
        said, _ = job.communicate()
    if job.returncode:
        raise SystemExit("the import failed")
    waits = {name: [wait for rater in working for wait in rater.waits[name]] for name in submission_load.WAITS}
    return {
        **json.loads(said.splitlines()[-1]),
        "judge_p95_ms": submission_load.summarize_waits([*waits["record"], *waits["submit"]])["p95"],
        "waits_ms": {name: submission_load.summarize_waits(found) for name, found in waits.items()},
        "requests": sum(map(len, waits.values())),
        "errors": sum(rater.errors for rater in working),
    }


class PagePacedHttpRater(submission_load.HttpRater):
    """A rater who sends at most one batch per second. Raters start at different times."""

    def __init__(self, port: int, session: str, slug: str, number: int) -> None:
        super().__init__(port, session, slug, number)
        self.sent_at = time.perf_counter() - BETWEEN_BATCHES
        self.due_at: float | None = time.perf_counter() + number / 16 * BETWEEN_BATCHES
        self.due: tuple[str, bytes] = ("claim", b"POST " + self.claiming)

    def send(self, name: str, message: bytes) -> None:
        if name == "record":
            self.due_at, self.due = max(time.perf_counter(), self.sent_at + BETWEEN_BATCHES), (name, message)
        else:
            super().send(name, message)

    def send_what_is_due(self) -> None:
        self.due_at, (name, message) = None, self.due
        if name == "record":
            self.sent_at = time.perf_counter()
        super().send(name, message)


def run_raters(
    raters: list[PagePacedHttpRater], *, until: float = float("inf"), is_over: Callable[[], bool] = bool
) -> None:
    """Run the raters. A request that is pending at the end is answered in the next call."""
    with selectors.DefaultSelector() as selector:
        for rater in raters:
            if not rater.is_through:
                selector.register(rater.socket, selectors.EVENT_READ, rater)
        while (now := time.perf_counter()) < until and not is_over() and selector.get_map():
            for rater in raters:
                if rater.due_at is not None and rater.due_at <= now:
                    rater.send_what_is_due()
            for key, _ in selector.select(timeout=0.005):
                key.data.hear()
                if key.data.is_through:
                    selector.unregister(key.fileobj)


def print_report(told: dict[str, Any], raters: int) -> None:
    for name in ("steps", "seconds", *BOUNDS, "requests", "errors"):
        bound = f"  (bar {BOUNDS[name]:,})" if name in BOUNDS else ""
        print(f"{name:>24}  {told[name]}{bound}")
    for name, each in told["waits_ms"].items():
        print(f"{name:>24}  median {each['median']} ms, p95 {each['p95']} ms")
    passed = {name: told[name] <= bar for name, bar in BOUNDS.items()}
    passed["steps_per_second"] = told["steps_per_second"] >= BOUNDS["steps_per_second"]
    print(json.dumps({"bench": "import beside raters", "raters": raters, "bounds": BOUNDS, "passed": passed, **told}))


def import_file(traces: int) -> None:
    """In a process of its own, as a worker is."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from importlib import import_module

    from django.utils import timezone

    from jobs import runner
    from labeling.traces import import_job, scan
    from tests import factories

    path = Path(os.environ["STEPMARK_DATA"]) / "traces.jsonl"
    with path.open("wb") as file:
        file.writelines(import_module("bench.import_speed").make_lines(traces))
    project = factories.make_project("imported")
    job = import_job.request_import(
        project=project, path=path, choices=scan.ImportOptions(), by=None, now=timezone.now()
    )
    began = time.perf_counter()
    state = runner.run_job(job.pk, import_job.chunks)
    seconds = time.perf_counter() - began
    job.refresh_from_db()
    if state != "done" or job.done != traces:
        raise SystemExit(f"the import ended as {state}: {job.failure}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    steps = traces * STEPS
    told = {"steps": steps, "seconds": round(seconds, 1), "steps_per_second": round(steps / seconds)}
    print(json.dumps({**told, "memory_mb": round(memory)}))


if __name__ == "__main__":
    import_file(int(sys.argv[1]))
