"""Measure raters right after an import and right after a restore: `python -m bench.fresh_import [--traces N]`, on the
server of DATABASE_URL.

The web server is open and has planned its statements on an empty project when `manage.py import_traces` imports a file.
Then 16 raters work at the highest speed that the page allows, from the first request on; the benchmark runs no ANALYZE.
The same raters work again after VACUUM ANALYZE and a pause: the settled figures. Then the database is backed up and
restored, and the raters work a third time. Each phase uses new connections of the raters to the same web server; the
restore needs a new one.

Processor time is only that of the web server and of this PostgreSQL. If other programs used more than a quarter of the
machine in a phase, the clock says nothing: that verdict is "not measured".
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import import_command, import_speed_with_raters, submission_load, submission_server

RATERS = 16
BUSY = 0.25
P95_MS, RATIO = 15.0, 1.5
PHASES = ("fresh", "settled", "restored")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--traces", type=int, default=100_000)
    arguments.add_argument("--seconds", type=float, default=20)
    arguments.add_argument("--inside", choices=["project", "sessions"], help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.inside:
        _prepare(given.inside)
        return
    with tempfile.TemporaryDirectory() as name, submission_server.create_database(Path(name)) as environment:
        folder = Path(name)
        environment["STEPMARK_LOG_LEVEL"] = "ERROR"
        phases = _measure(environment, folder, given.traces, given.seconds)
    _print_report(given.traces, phases)


def _measure(environment: dict[str, str], folder: Path, traces: int, seconds: float) -> dict[str, dict[str, Any]]:
    file, backup = folder / "traces.jsonl", folder / "whole.backup"
    with file.open("wb") as stream:
        stream.writelines(import_command._make_lines(traces))
    import_command._manage(environment, "migrate", "--verbosity", "0")
    sessions = _run_inside(environment, "project")
    with submission_server.run_web_server(environment, folder) as server:
        _work(server, environment, sessions, 3)  # nothing to claim yet: plans for empty tables
        import_command._manage(environment, "import_traces", str(file), "--project", "bench")
        phases = {"fresh": _work(server, environment, sessions, seconds)}
        submission_server.analyze_database(environment)
        time.sleep(5)
        phases["settled"] = _work(server, environment, sessions, seconds)
    import_command._manage(environment, "backup", str(backup))
    import_command._manage(environment, "restore", str(backup), "--yes")
    sessions = _run_inside(environment, "sessions")
    with submission_server.run_web_server(environment, folder) as server:
        phases["restored"] = _work(server, environment, sessions, seconds)
    return phases


def _work(
    server: submission_server.WebServerProcess, environment: dict[str, str], sessions: list[str], seconds: float
) -> dict[str, Any]:
    """Let the raters work, and return their waits and the processor time of one cycle."""
    raters = [PatientRater(server.port, session, "bench", number + 1) for number, session in enumerate(sessions)]
    with closing(import_command._connect(environment["DATABASE_URL"])) as link:
        meter, web, own = import_command._Meter(link), server.cpu_seconds()["web"], time.process_time()
        import_speed_with_raters.run_raters(list(raters), until=time.perf_counter() + seconds)
        web, own = server.cpu_seconds()["web"] - web, time.process_time() - own
        used = meter.read(web + own)
    for rater in raters:
        rater.socket.close()
    cycles = sum(rater.cycles for rater in raters)
    waits = {name: [wait for rater in raters for wait in rater.waits[name]] for name in submission_load.WAITS}
    return {
        "cycles": cycles,
        "errors": sum(rater.errors for rater in raters),
        "p95_ms": {name: submission_load.summarize_waits(found)["p95"] for name, found in waits.items()},
        "first_ms": {name: round(1000 * found[0], 1) if found else None for name, found in waits.items()},
        "web_cpu_ms": round(1000 * web / max(cycles, 1), 2),
        "database_cpu_ms": round(1000 * used.server_cpu / max(cycles, 1), 2),
        "others_share": round(used.others_share, 2),
    }


class PatientRater(import_speed_with_raters.PagePacedHttpRater):
    """Stops without an error if there is nothing to claim."""

    def fail(self) -> None:
        if self.name == "claim" and self.answer.startswith((b"HTTP/1.1 204", b"HTTP/1.1 404", b"HTTP/1.1 409")):
            self.is_through = True
        else:
            super().fail()

    def go_on(self, body: bytes) -> None:
        if self.name == "claim" and b'"assignment":' not in body:
            self.is_through = True
        else:
            super().go_on(body)


def _run_inside(environment: dict[str, str], what: str) -> list[str]:
    """Prepare the database in a process of its own, and return the sessions of the raters."""
    command = [sys.executable, "-m", "bench.fresh_import", "--inside", what]
    done = subprocess.run(
        command, env=environment, cwd=submission_server.ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    sessions: list[str] = json.loads(done.stdout.splitlines()[-1])
    return sessions


def _prepare(what: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.test import Client

    from accounts.models import User
    from bench import submission_fill

    if what == "project":
        project = submission_fill.make_project()
        print(json.dumps([submission_fill.create_session(project, number) for number in range(RATERS)]))
        return
    sessions = []
    for user in User.objects.filter(username__startswith="rater-").order_by("pk"):
        client = Client()
        client.force_login(user)
        sessions.append(client.cookies["sessionid"].value)
    print(json.dumps(sessions))


def _print_report(traces: int, phases: dict[str, dict[str, Any]]) -> None:
    print(f"{'':>10} {'cycles':>7} {'errors':>7}", *(f"{head:>8}" for head in (*submission_load.WAITS, "web", "db")))
    for name, found in phases.items():
        waits = " ".join(f"{found['p95_ms'][each]:>8}" for each in submission_load.WAITS)
        print(
            f"{name:>10} {found['cycles']:>7} {found['errors']:>7} {waits} {found['web_cpu_ms']:>8}"
            f" {found['database_cpu_ms']:>8}  {found['others_share']:.0%}"
        )
    print(json.dumps({"bench": "fresh import", "traces": traces, "passed": _judge(phases), **phases}))


def _judge(phases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    settled = phases["settled"]
    is_busy = any(found["others_share"] > BUSY for found in phases.values())
    passed: dict[str, Any] = {}
    for name in ("fresh", "restored"):
        found = phases[name]
        cpu, usual = (each["web_cpu_ms"] + each["database_cpu_ms"] for each in (found, settled))
        passed[f"{name} processor time"] = bool(found["cycles"]) and not found["errors"] and cpu <= RATIO * usual
        by_clock = all(
            found["p95_ms"][each] <= min(P95_MS, RATIO * settled["p95_ms"][each]) for each in submission_load.WAITS
        )
        passed[f"{name} p95"] = "not measured" if is_busy else by_clock
    return passed


if __name__ == "__main__":
    main()
