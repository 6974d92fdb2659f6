"""Run a judge on 10,000 traces against a scripted endpoint: `python -m bench.judging [--traces N]`. With `--rollouts`,
run a Monte Carlo rater with one rollout after each of the six steps.

The endpoint is a process of its own. It answers after a fixed delay, and one in a hundred first attempts with 500, and
another one with 429 and `Retry-After: 0`. Two clients take turns with the same number of threads: bare threads that
only send a prompt and read the answer, which shows the speed of the endpoint itself, and the job of a run, which also
loads traces, stores answers, counts costs and submits labels. The target is for the ratio of their answers per second.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

from bench import databases, harness

LEAST_RATIO = 0.8
_BLOCKS = 4
_STEPS = 6
_ANSWER = "I check the steps one by one. " * 20 + "\\boxed{1}"


class ScriptedEndpointHandler(BaseHTTPRequestHandler):
    delay = 0.0
    seen: set[str] = set()  # noqa: RUF012  shared by all requests on purpose
    answered: Counter[str] = Counter()  # noqa: RUF012  as above
    lock = threading.Lock()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.delay)
        key = self.headers.get("Idempotency-Key", "")
        with self.lock:
            is_first = key not in self.seen
            self.seen.add(key)
        trouble = int(key[:8] or "1", 16) % 100 if is_first else 99
        if trouble < 2:
            self._send(500 if trouble else 429, b"{}")
            return
        with self.lock:
            self.answered[key] += 1
        choice = {"message": {"content": _ANSWER}, "text": _ANSWER, "finish_reason": "stop"}
        usage = {"prompt_tokens": 400, "completion_tokens": 120}
        self._send(200, json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode())

    def do_GET(self) -> None:
        """Return how often each idempotency key was answered."""
        with self.lock:
            content = json.dumps(self.answered)
        self._send(200, content.encode())

    def _send(self, status: int, content: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # the client may have been killed
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class ScriptedEndpoint(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


def _serve(port: Connection, delay: float) -> None:
    ScriptedEndpointHandler.delay = delay
    server = ScriptedEndpoint(("127.0.0.1", 0), ScriptedEndpointHandler)
    port.send(server.server_port)
    server.serve_forever()


@contextmanager
def running_endpoint(delay: float) -> Iterator[int]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, delay), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds that the endpoint takes for an answer")
    parser.add_argument("--rollouts", action="store_true", help="run a Monte Carlo rater")
    options = parser.parse_args()
    os.environ["STEPMARK_OUTBOUND_HOSTS"] = "127.0.0.1"
    with databases.temporary_databases(["judging"]) as made, running_endpoint(options.delay) as port:
        databases.use_database(made["judging"])
        found = _measure(port, options.traces, options.threads, is_monte_carlo=options.rollouts)
    for name, value in found.items():
        print(f"{name:<36} {value}")
    print(harness.last_json_line({"bench": "judging", "passed": found["ratio"] >= LEAST_RATIO, **found}))


def _measure(port: int, n_traces: int, n_threads: int, *, is_monte_carlo: bool) -> dict[str, Any]:
    from django.utils import timezone

    from labeling.models import Submission, Trace
    from machines import judges, runs
    from machines.judges import JudgeSettings
    from machines.models import JudgeVote
    from machines.rollouts import RolloutOptions

    project = fill_project(n_traces)
    own: dict[str, Any] = {"contract": "rollouts", "rollouts": RolloutOptions()} if is_monte_carlo else {}
    settings = JudgeSettings("bench", f"http://127.0.0.1:{port}/v1", "m", n_concurrent=n_threads, **own)
    judge = judges.add_judge(project=project, settings=settings, by=None, now=timezone.now())
    size = n_traces // _BLOCKS
    alone, job, cpu = [], [], 0.0
    for _ in range(_BLOCKS):
        alone.append(_ask_alone(port, max(size * (_STEPS if is_monte_carlo else 1) // 4, n_threads), n_threads))
        before = time.process_time()
        job.append(_run_job(runs.start_run(judge=judge, by=None, now=timezone.now(), most_traces=size), size))
        cpu += time.process_time() - before
    return {
        "traces": Trace.objects.count(),
        "threads": n_threads,
        "votes": JudgeVote.objects.filter(state="parsed").count(),
        "labels": Submission.objects.count(),
        "attempts repeated": sum(run.n_repeated for run in judge.runs.all()),
        "endpoint alone, requests per second": round(max(alone), 1),
        "job, votes per second": round(max(job), 1),
        "processor ms of the job per vote": round(1000 * cpu / JudgeVote.objects.count(), 2),
        "ratio": round(sum(job) / sum(alone), 3),
        "ratio of each pair": [round(mine / its, 3) for mine, its in zip(job, alone, strict=True)],
    }


def fill_project(n_traces: int) -> Any:
    from django.utils import timezone

    from formats import records
    from formats.records import ProblemRecord, TraceRecord
    from labeling.models import Project
    from labeling.traces import load

    now = timezone.now()
    project = Project.objects.create(slug="judging", name="judging", created_at=now)
    source = load.ensure_source(project=project, name="made", format="generated", now=now)
    for start in range(0, n_traces, 1000):
        rows = [
            TraceRecord(
                problem=ProblemRecord(f"What is {number} + 1, step by step?", answer="1"),
                steps=records.make_steps([f"Step {step} of {number}. " * 8 for step in range(_STEPS)]),
                digest=f"{number:064x}",
            )
            for number in range(start, min(start + 1000, n_traces))
        ]
        load.load_records(project=project, source=source, records=rows, now=now)
    return project


def _ask_alone(port: int, n: int, n_threads: int) -> float:
    """Return the requests per second of bare threads."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 2500}]}).encode()

    def ask(_number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        connection.close()

    started = time.perf_counter()
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(ask, range(n)))
    return n / (time.perf_counter() - started)


def _run_job(run: Any, n: int) -> float:
    """Return the votes per second of the job."""
    from jobs import runner
    from machines import machine_job

    started = time.perf_counter()
    runner.run_job(run.job, machine_job.run_machine_job)
    seconds = time.perf_counter() - started
    run.refresh_from_db()
    if run.state != "done" or run.n_judged != n:
        raise SystemExit(f"The run ended as {run.state} with {run.n_judged} of {n} traces: {run.pause_line}")
    return float(run.n_votes / seconds)


if __name__ == "__main__":
    main()
