"""Everything that is checked before a change lands: `./test [--strict] [what pytest takes …]`.

Static checks, then the suite on each engine that is there, then what kills processes, then walks in a browser. What
was left out is said in one line; in strict mode leaving out is failing. With arguments for pytest, only tests run.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

BASE = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
# What the platform's own environment would change in a test; each phase names what it needs.
OURS = ("STEPMARK_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE", "PYTEST_ADDOPTS")
# Some machines ask for no bytecode: each of the hundreds of processes below would compile all that it imports.
SLOWING = ("PYTHONDONTWRITEBYTECODE",)
# What does not touch the database says the same on every engine, and what is SQLite's own is no matter of another.
ENGINELESS = (
    "tests/commands",
    "tests/config/sqlite",
    "tests/config/test_env.py",
    "tests/config/test_settings.py",
    "tests/conventions",
    "tests/dashboard/charts",
    "tests/dashboard/test_flagging.py",
    "tests/demo/agents",
    "tests/demo/maths",
    "tests/exports/formats",
    "tests/labeling/agreement",
    "tests/labeling/importing/readers",
    "tests/labeling/importing/test_files.py",
    "tests/labeling/importing/test_lying.py",
    "tests/labeling/importing/test_segmenters.py",
    "tests/labeling/management",
    "tests/labeling/texts",
    "tests/machine",
    "tests/prm/backends",
    "tests/prm/evaluation",
    "tests/prm/selection",
    "tests/prm/test_evaluate_prm.py",
    "tests/supervisor",
    "tests/test_conventions.py",
    "tests/test_docs.py",
    "tests/test_vendor.py",
)
NOTHING_COLLECTED = 5
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b")


@dataclass(frozen=True)
class Phase:
    name: str
    command: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    counts_tests: bool = False


@dataclass
class Outcome:
    """What came of the phases so far."""

    counts: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def main(arguments: list[str]) -> int:
    strict, chosen = "--strict" in arguments, [word for word in arguments if word != "--strict"]
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="stepmark-test-") as folder:
        (Path(folder) / "data").mkdir()
        for phase in [*([] if chosen else static_checks()), *suites(chosen, outcome.left_out)]:
            run(phase, outcome, folder=folder, may_be_empty=bool(chosen))
    return report(outcome, strict=strict)


def static_checks() -> Iterator[Phase]:
    templates = sorted(str(path.relative_to(BASE)) for path in BASE.glob("templates/**/*.html"))
    commands = {
        "ruff check": ["ruff", "check", "."],
        "ruff format": ["ruff", "format", "--check", "."],
        "mypy": ["mypy", "."],
        "rooms": ["lint-imports"],
        "djade": ["djade", "--check", "--target-version", "5.2", *templates],
        "djlint": ["djlint", "--lint", "--quiet", "templates"],
        "migrations": ["python", "manage.py", "makemigrations", "--check", "--dry-run"],
    }
    for name, (program, *rest) in commands.items():
        yield Phase(name, [str(BIN / program), *rest])


def suites(chosen: list[str], left_out: list[str]) -> Iterator[Phase]:
    pytest = [str(BIN / "python"), "-m", "pytest", "-q"]
    quick, fault, journey = (["-m", mark] for mark in ("not fault and not journey", "fault", "journey"))
    # Each of two processes takes a half of the tests in their order, so that what stands for a module is made once.
    halves = ["-n", "2", "--dist", "worksteal"]
    scaled = servers(left_out)
    apart = [f"--ignore={path}" for path in ENGINELESS]
    yield Phase("suite on SQLite", [*pytest, *halves, *quick, *chosen], counts_tests=True)
    if scaled:
        yield Phase("suite on PostgreSQL", [*pytest, *halves, *quick, *apart, *chosen], scaled, counts_tests=True)
    yield Phase("faults on SQLite", [*pytest, *fault, *chosen], counts_tests=True)
    if scaled:
        yield Phase("faults on PostgreSQL", [*pytest, *fault, *apart, *chosen], scaled, counts_tests=True)
    if not chosen:
        # Says what cannot be had, and is no failure then: torch is the trainers', not ours.
        yield Phase("trainers", [str(BIN / "python"), "-m", "tests.trainers.place"])
    if any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        yield Phase("journeys", [*pytest, "-p", "playwright", *journey, *chosen], counts_tests=True)
    else:
        left_out.append("journeys (no chromium)")


def servers(left_out: list[str]) -> dict[str, str]:
    """PostgreSQL and Redis as the environment names them, or as they answer on their usual ports."""
    database = os.environ.get("DATABASE_URL") or _usual_database()
    broker = os.environ.get("REDIS_URL") or _usual_broker()
    if not database:
        left_out.append("PostgreSQL (DATABASE_URL is not set, and none answers on port 5432 as postgres)")
        return {}
    if not broker:
        left_out.append("Redis (REDIS_URL is not set, and none answers on port 6379)")
    return {"DATABASE_URL": database, **({"REDIS_URL": broker} if broker else {})}


def _usual_database() -> str:
    import psycopg

    try:
        psycopg.connect("postgresql://postgres@127.0.0.1:5432/postgres", connect_timeout=3).close()
    except psycopg.Error:
        return ""
    # A name for this copy of the project: two may be tested at the same time.
    return f"postgresql://postgres@127.0.0.1:5432/stepmark_{hashlib.sha256(bytes(BASE)).hexdigest()[:8]}"


def _usual_broker() -> str:
    import redis

    url = "redis://127.0.0.1:6379/15"
    try:
        with redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=3) as client:
            client.ping()
    except redis.RedisError:
        return ""
    return url


def run(phase: Phase, outcome: Outcome, *, folder: str, may_be_empty: bool) -> None:
    print(f"\n===== {phase.name}", flush=True)
    given = {name: value for name, value in os.environ.items() if not name.startswith((*OURS, *SLOWING))}
    env = {**given, "SECRET_KEY": "test", "STEPMARK_DATA": f"{folder}/data", **phase.env}
    began, last_line = time.monotonic(), ""
    with subprocess.Popen(
        phase.command, cwd=BASE, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            last_line = line if line.strip() else last_line
    outcome.seconds[phase.name] = time.monotonic() - began
    counts = count(last_line) if phase.counts_tests else Counter()
    outcome.counts += counts
    is_empty = phase.counts_tests and process.returncode == NOTHING_COLLECTED
    if process.returncode and not (is_empty and (may_be_empty or phase.name == "journeys")):
        outcome.broken.append(phase.name)
        outcome.counts["failed"] += 0 if counts["failed"] else 1


def count(summary: str) -> Counter[str]:
    """pytest's last line in three numbers: an error is a failure, and what was expected to fail did not pass."""
    kinds = {"error": "failed", "errors": "failed", "xpassed": "failed", "xfailed": "skipped"}
    found: Counter[str] = Counter()
    for number, kind in COUNTED.findall(summary):
        found[kinds.get(kind, kind)] += int(number)
    return found


def report(outcome: Outcome, *, strict: bool) -> int:
    print("\n===== durations")
    for name, seconds in outcome.seconds.items():
        print(f"{seconds:7.1f} s  {name}")
    if outcome.broken:
        print("Failed: " + ", ".join(outcome.broken))
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
