"""`./test` counts the results of pytest, reports skipped checks, and fails when it should."""

import sys
from functools import partial
from pathlib import Path

import pytest

from tests import check_all
from tests.check_all import CheckOutcome, CheckPhase


@pytest.mark.parametrize(
    ("summary", "counted"),
    [
        ("555 passed in 212.29s (0:03:32)", {"passed": 555}),
        ("1 failed, 18 passed, 2 skipped in 46.20s", {"passed": 18, "failed": 1, "skipped": 2}),
        ("3 passed, 1 error in 2.00s", {"passed": 3, "failed": 1}),
        ("2 passed, 1 xfailed, 1 xpassed in 2.00s", {"passed": 2, "skipped": 1, "failed": 1}),
        ("13 deselected in 0.88s", {}),
    ],
)
def test_count_takes_errors_for_failures(summary: str, counted: dict[str, int]) -> None:
    assert check_all.parse_counts(summary) == counted


def test_report_ends_with_the_counts_and_fails_only_in_strict_mode(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = CheckOutcome(left_out=["journeys (no chromium)"])
    outcome.counts.update(passed=7, skipped=1)
    assert check_all.print_report(outcome, strict=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "7 passed, 0 failed, 1 skipped"
    assert lines[-2].startswith("Left out: journeys (no chromium); 1 skipped")
    assert check_all.print_report(outcome, strict=True) == 1


def test_report_fails_when_a_phase_broke(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = CheckOutcome(broken=["mypy"])
    outcome.counts.update(passed=7, failed=1)
    assert check_all.print_report(outcome, strict=False) == 1
    assert "Failed: mypy" in capsys.readouterr().out


@pytest.mark.parametrize(("code", "broken"), [(0, []), (1, ["phase"]), (5, ["phase"])])
def test_run_takes_any_other_exit_code_for_broken(tmp_path: Path, code: int, broken: list[str]) -> None:
    outcome = CheckOutcome()
    phase = CheckPhase("phase", [sys.executable, "-c", f"raise SystemExit({code})"], counts_tests=True)
    check_all.run_phase(phase, outcome, folder=str(tmp_path), env={}, may_be_empty=False)
    assert outcome.broken == broken
    assert outcome.counts["failed"] == len(broken)


def test_run_takes_no_tests_for_broken_unless_they_were_chosen(tmp_path: Path) -> None:
    outcome = CheckOutcome()
    phase = CheckPhase("phase", [sys.executable, "-c", "raise SystemExit(5)"], counts_tests=True)
    check_all.run_phase(phase, outcome, folder=str(tmp_path), env={}, may_be_empty=True)
    assert outcome.broken == []


def test_static_checks_are_programs_that_are_installed() -> None:
    for phase in check_all.list_static_checks():
        assert Path(phase.command[0]).exists(), phase.name


def test_phase_beside_another_is_printed_after_it_and_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\nprint('waited')"
    shows = "import sys; open(sys.argv[1], 'w').close(); print('shown'); sys.exit(3)"
    first, second = ([sys.executable, "-c", source, str(tmp_path / "sign")] for source in (waits, shows))
    outcome = CheckOutcome()
    phases = [CheckPhase("first", first, is_beside=True), CheckPhase("second", second)]
    run = partial(check_all.run_phase, folder=str(tmp_path), env={}, may_be_empty=False)
    check_all.run_phases(phases, outcome, run)
    assert capsys.readouterr().out.split() == ["=====", "second", "shown", "=====", "first", "waited"]
    assert (set(outcome.seconds), outcome.broken) == ({"first", "second"}, ["second"])


@pytest.mark.fault
def test_a_phase_that_hangs_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_all, "PHASE_SECONDS", 0.2)
    outcome = CheckOutcome()
    check_all.run_phase(
        CheckPhase("hangs", ["sleep", "600"]), outcome, folder=str(tmp_path), env={}, may_be_empty=False
    )
    assert outcome.broken == ["hangs"]


@pytest.mark.parametrize(("always_fails", "broken", "repeated"), [(False, [], ["1 of flaky"]), (True, ["flaky"], [])])
def test_failures_of_real_programs_run_once_more(
    tmp_path: Path, always_fails: bool, broken: list[str], repeated: list[str]
) -> None:
    """A stand-in for pytest fails the first time, and every time if told to."""
    script = (
        "import pathlib, sys; seen = pathlib.Path(sys.argv[1]); fails = not seen.exists() or sys.argv[2] == 'True';"
        " seen.touch(); print('1 failed, 2 passed in 1s' if fails else '1 passed in 1s'); sys.exit(int(fails))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "seen"), str(always_fails)]
    outcome = CheckOutcome()
    phase = CheckPhase("flaky", command, counts_tests=True)
    check_all.run_phase(phase, outcome, folder=str(tmp_path), env={}, may_be_empty=False)
    assert (outcome.broken, outcome.repeated) == (broken, repeated)
    assert (outcome.counts["passed"], outcome.counts["failed"]) == ((2, 1) if always_fails else (3, 0))
