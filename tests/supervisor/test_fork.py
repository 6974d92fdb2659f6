"""Forked processes: exit codes, logs, signals, and process groups."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.fork import ForkedProcess, fork_process

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # because of pytest's threads


def grown(act: Callable[[], int], file: Path) -> ForkedProcess:
    with file.open("wb") as output:
        return fork_process("twig", act, output=output.fileno())


def speak() -> int:
    os.write(1, b"leaf")
    return 3


def fail() -> int:
    raise RuntimeError("a storm")


def leave() -> int:
    raise SystemExit("no more")


def stay() -> int:
    signal.pause()
    return 0


def test_branch_has_an_exit_code_and_a_log(tmp_path: Path) -> None:
    one = grown(speak, tmp_path / "log")
    assert one.wait() == 3
    assert one.poll() == 3
    assert (tmp_path / "log").read_text() == "leaf"


def test_branch_logs_its_exception(tmp_path: Path) -> None:
    assert grown(fail, tmp_path / "log").wait() == 1
    assert "RuntimeError: a storm" in (tmp_path / "log").read_text()
    assert grown(leave, tmp_path / "log").wait() == 1


def test_branch_ends_on_sigterm_and_has_its_own_group(tmp_path: Path) -> None:
    one = grown(stay, tmp_path / "log")
    assert os.getpgid(one.pid) == one.pid
    assert one.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        one.wait(0.0)
    one.send_signal(signal.SIGTERM)
    assert one.wait(20) == -signal.SIGTERM
    one.send_signal(signal.SIGTERM)  # sends no signal to another process that may have the same id
