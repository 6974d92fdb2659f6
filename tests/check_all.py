"""Run all checks: `./test [--strict] [pytest arguments]`.

Static checks and conventions, then the suite, then fault tests, then journeys in a browser. The last lines list what
was skipped, which is a failure in strict mode. With pytest arguments, only tests run.

Many tests run real programs, browsers or concurrent connections. Tests that fail run once more, and the last lines say
how many passed only then.

The servers are those that `tests.environment` finds or starts, once for all phases.
"""

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

from tests.chromium import find_chromium
from tests.environment import servers_of_tests

BASE = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
# Variables of the caller that would change a test; each phase sets what it needs.
OWN_VARIABLES = ("STEPMARK_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE", "PYTEST_ADDOPTS")
# More threads than cores take processor time from other tests: they wait for each other in a loop.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
# Without bytecode, each of the hundreds of processes below would compile all its imports.
SLOW_VARIABLES = ("PYTHONDONTWRITEBYTECODE",)
TESTS_FAILED, NOTHING_COLLECTED = 1, 5
PHASE_SECONDS = 25 * 60  # a phase that hangs fails, and the others still run
QUICK = "not static and not fault and not journey"
running: list[subprocess.Popen[str]] = []
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b")


@dataclass(frozen=True)
class CheckPhase:
    name: str
    command: list[str]
    counts_tests: bool = False
    is_beside: bool = False  # it runs while the next other phase runs, because it keeps one core busy at most


@dataclass
class CheckOutcome:
    """Results of the phases that have run."""

    counts: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def include(self, other: "CheckOutcome") -> None:
        self.counts += other.counts
        self.broken += other.broken
        self.repeated += other.repeated
        self.seconds |= other.seconds


def main(arguments: list[str]) -> int:
    strict, chosen = "--strict" in arguments, [word for word in arguments if word != "--strict"]
    outcome = CheckOutcome()
    with tempfile.TemporaryDirectory(prefix="stepmark-test-") as folder:
        (Path(folder) / "data").mkdir()
        with servers_of_tests() as addresses:
            phases = [*([] if chosen else list_static_checks()), *list_suites(chosen, outcome.left_out)]
            run_phases(phases, outcome, partial(run_phase, folder=folder, env=addresses, may_be_empty=bool(chosen)))
    return print_report(outcome, strict=strict)


def list_static_checks() -> Iterator[CheckPhase]:
    templates = sorted(str(path.relative_to(BASE)) for path in BASE.glob("templates/**/*.html"))
    commands = {
        "ruff check": ["ruff", "check", "."],
        "ruff format": ["ruff", "format", "--check", "."],
        "imports": ["lint-imports"],
        "djade": ["djade", "--check", "--target-version", "5.2", *templates],
        "djlint": ["djlint", "--lint", "--quiet", "templates"],
        "migrations": ["python", "manage.py", "makemigrations", "--check", "--dry-run"],
        "mypy": ["mypy", "."],
    }
    for name, (program, *rest) in commands.items():
        yield CheckPhase(name, [str(BIN / program), *rest], is_beside=name != "mypy")


def list_suites(chosen: list[str], left_out: list[str]) -> Iterator[CheckPhase]:
    pytest = [str(BIN / "python"), "-m", "pytest", "-q"]
    quick, static, fault, journey = (["-m", mark] for mark in (QUICK, "static", "fault", "journey"))
    # Each of two processes takes half of the tests in their order, so that fixtures of a module are made once.
    halves = ["-n", "2", "--dist", "worksteal"]
    yield CheckPhase("conventions", [*pytest, *halves, *static, *chosen], counts_tests=True)
    yield CheckPhase("suite", [*pytest, *halves, *quick, *chosen], counts_tests=True)
    # These often wait for other processes, so four run at a time. The tests of a file share a platform.
    shares = ["-n", "4", "--dist", "loadfile", "--no-loadscope-reorder"]
    if not chosen:
        # It reports missing packages without failing: trainers need torch, Stepmark does not.
        yield CheckPhase("trainers", [str(BIN / "python"), "-m", "tests.trainers.environment"], is_beside=True)
    yield CheckPhase("faults", [*pytest, *shares, *fault, *chosen], counts_tests=True)
    if find_chromium():
        quarters = ["-n", "4", "--dist", "worksteal"]
        command = [*pytest, *quarters, "-p", "playwright", *journey, *(chosen or ["tests/journeys"])]
        yield CheckPhase("journeys", command, counts_tests=True)
    else:
        left_out.append("journeys (no chromium)")


def run_phases(phases: Iterable[CheckPhase], outcome: CheckOutcome, run: Callable[..., None]) -> None:
    beside: list[CheckPhase] = []
    for phase in phases:
        if phase.is_beside:
            beside.append(phase)
            continue
        with running_beside(beside, outcome, run):
            run(phase, outcome)
        beside.clear()


@contextmanager
def running_beside(phases: list[CheckPhase], outcome: CheckOutcome, run: Callable[..., None]) -> Iterator[None]:
    """Run phases in order in a thread while the block runs, and print their output after it."""
    found, printed = CheckOutcome(), io.StringIO()

    def run_in_order() -> None:
        for phase in phases:
            run(phase, found, output=printed)

    thread = threading.Thread(target=run_in_order)
    thread.start()
    try:
        yield
    except KeyboardInterrupt:
        phases.clear()
        for process in running:
            os.killpg(process.pid, signal.SIGINT)
        raise
    finally:
        thread.join()
        print(printed.getvalue(), end="", flush=True)
        outcome.include(found)


def run_phase(
    phase: CheckPhase,
    outcome: CheckOutcome,
    *,
    folder: str,
    env: Mapping[str, str],
    may_be_empty: bool,
    output: TextIO | None = None,
) -> None:
    print(f"\n===== {phase.name}", file=output, flush=True)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name == "STEPMARK_CHROMIUM" or not name.startswith((*OWN_VARIABLES, *SLOW_VARIABLES))
    }
    env = {**inherited, **ONE_THREAD, "SECRET_KEY": "test", "STEPMARK_DATA": f"{folder}/data", **env}
    began = time.monotonic()
    code, counts = run_command(phase, phase.command, env, output)
    if code == TESTS_FAILED and phase.counts_tests:
        print(f"\n===== {phase.name} that failed, once more", file=output, flush=True)
        repeated = [*phase.command, "--last-failed", "--last-failed-no-failures=none"]
        code, again = run_command(phase, repeated, env, output)
        if again["passed"] != counts["failed"]:
            code = TESTS_FAILED  # not all of them ran again
        if code == 0:
            outcome.repeated.append(f"{again['passed']} of {phase.name}")
            counts += Counter(passed=again["passed"], failed=-again["passed"])
    outcome.seconds[phase.name] = time.monotonic() - began
    outcome.counts += counts
    is_empty = phase.counts_tests and code == NOTHING_COLLECTED
    if code and not (is_empty and (may_be_empty or phase.name == "journeys")):
        outcome.broken.append(phase.name)
        outcome.counts["failed"] += 0 if counts["failed"] else 1


def run_command(
    phase: CheckPhase, command: list[str], env: Mapping[str, str], output: TextIO | None
) -> tuple[int, Counter[str]]:
    """Print the output of a command. Return its exit code and the counts in its last line."""
    last_line = ""
    with subprocess.Popen(
        command,
        cwd=BASE,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        running.append(process)
        deadline = threading.Timer(PHASE_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        deadline.start()
        try:
            for line in process.stdout:
                print(line, end="", file=output, flush=True)
                last_line = line if line.strip() else last_line
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)  # the terminal interrupts only this process
            raise
        finally:
            deadline.cancel()
            running.remove(process)
    return process.returncode, parse_counts(last_line) if phase.counts_tests else Counter()


def parse_counts(summary: str) -> Counter[str]:
    """Parse pytest's last line. Errors and unexpected passes count as failed, expected failures as skipped."""
    kinds = {"error": "failed", "errors": "failed", "xpassed": "failed", "xfailed": "skipped"}
    found: Counter[str] = Counter()
    for number, kind in COUNTED.findall(summary):
        found[kinds.get(kind, kind)] += int(number)
    return found


def print_report(outcome: CheckOutcome, *, strict: bool) -> int:
    print("\n===== durations")
    for name, seconds in outcome.seconds.items():
        print(f"{seconds:7.1f} s  {name}")
    if outcome.broken:
        print("Failed: " + ", ".join(outcome.broken))
    if outcome.repeated:
        print("Passed only when repeated: " + ", ".join(outcome.repeated))
    left_out = [*outcome.left_out]
    if skipped := outcome.counts["skipped"]:
        left_out.append(f"{skipped} skipped tests (their reasons stand above)")
    print("Left out: " + ("; ".join(left_out) or "nothing"))
    counts, is_refused = outcome.counts, strict and bool(left_out)
    if is_refused:
        print("Strict: nothing may be left out.")
    print(f"{counts['passed']} passed, {counts['failed']} failed" + (f", {skipped} skipped" if skipped else ""))
    return int(bool(outcome.broken) or is_refused)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
