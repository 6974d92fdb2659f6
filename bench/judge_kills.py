"""Kill a judge's run of 10,000 traces at random moments, and count what is paid twice: `python -m bench.judge_kills`.

The endpoint is a process of its own, as in `bench.judging`, and counts its answers by idempotency key. The run is
another process, which is killed with SIGKILL after a random time and started again until the run is done. After each
kill, the stored votes are listed: none of them may be answered again. Requests that were under way are asked again, at
most as many as can be under way at once.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from typing import Any

from bench import databases, harness
from bench.judging import fill_project, running_endpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that the endpoint takes for an answer")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--job", type=int, help=argparse.SUPPRESS)  # the process that is killed
    options = parser.parse_args()
    if options.job:
        _run_job(options.job)
        return
    os.environ["STEPMARK_OUTBOUND_HOSTS"] = "127.0.0.1"
    with databases.temporary_databases(["kills"]) as made, running_endpoint(options.delay) as port:
        databases.use_database(made["kills"])
        found = _measure(port, options.traces, options.threads, random.Random(options.seed))
    for name, value in found.items():
        print(f"{name:<42} {value}")
    passed = (
        not found["stored votes answered again"] and found["answers paid twice"] <= found["most under way at kills"]
    )
    print(harness.last_json_line({"bench": "judge_kills", "passed": passed, **found}))


def _run_job(job: int) -> None:
    from bench import configured_django  # noqa: F401  sets Django up
    from jobs import runner
    from machines import machine_job

    runner.run_job(job, machine_job.run_machine_job)


def _measure(port: int, n_traces: int, n_threads: int, dice: random.Random) -> dict[str, Any]:
    from django.utils import timezone

    from labeling.models import Submission
    from machines import judges, runs
    from machines.judges import JudgeSettings
    from machines.models import JudgeVote

    project = fill_project(n_traces)
    settings = JudgeSettings("bench", f"http://127.0.0.1:{port}/v1", "m", n_concurrent=n_threads)
    judge = judges.add_judge(project=project, settings=settings, by=None, now=timezone.now())
    run = runs.start_run(judge=judge, by=None, now=timezone.now())
    n_kills = n_again = 0
    stored: dict[str, int] = {}
    started = time.perf_counter()
    while True:
        worker = subprocess.Popen([sys.executable, "-m", "bench.judge_kills", "--job", str(run.job)])
        try:
            worker.wait(timeout=dice.uniform(2.0, 8.0))
        except subprocess.TimeoutExpired:
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            n_kills += 1
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as response:
            answers: dict[str, int] = json.load(response)
        n_again += sum(answers[key] != n for key, n in stored.items())
        run.refresh_from_db()
        if run.state != "open":
            break
        stored = {key: answers.get(key, 0) for key in _list_keys(judge)}
        _free_job(run.job or 0)
    if run.state != "done":
        raise SystemExit(f"The run ended as {run.state}: {run.pause_line}")
    return {
        "traces": n_traces,
        "kills": n_kills,
        "votes": JudgeVote.objects.filter(state="parsed").count(),
        "labels": Submission.objects.count(),
        "stored votes answered again": n_again,
        "answers paid twice": sum(n - 1 for n in answers.values()),
        "most under way at kills": n_kills * (n_threads + n_threads // 4),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _list_keys(judge: Any) -> list[str]:
    """Return the idempotency keys of the stored votes (`machines.vote_requests`)."""
    votes = judge.votes.values_list("trace", "number")
    names = (f"{judge.rater.pseudonym} {trace} {number}" for trace, number in votes)
    return [hashlib.sha256(name.encode()).hexdigest() for name in names]


def _free_job(job: int) -> None:
    """Requeue the job of the killed process, as the sweep does when its lease has ended."""
    from django.utils import timezone

    from jobs import control
    from jobs.models import Job

    Job.objects.filter(pk=job, state="running").update(lease_ends_at=timezone.now())
    control.sweep_jobs(now=timezone.now())


if __name__ == "__main__":
    main()
