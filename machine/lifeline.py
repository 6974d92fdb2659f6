"""Ties a process to the one that started it, so that even `kill -9` of the supervisor leaves nothing behind.

Run as a script it becomes the guard of one program: `python -I lifeline.py PARENT_PID PROGRAM [ARGUMENT…]`.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from types import FrameType

PR_SET_PDEATHSIG = 1


def tie_to_parent(parent: int) -> bool:
    """Ask the kernel to kill this process with its parent. False where the kernel has no such promise to give."""
    if not sys.platform.startswith("linux"):
        return False
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before the promise was given
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def stay_with_parent(parent: int, *, pause: float = 0.3) -> None:
    """For a process that branched off. Where the kernel promises nothing, a thread looks whether the parent lives."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(pause)
        os.kill(os.getpid(), signal.SIGKILL)

    if not tie_to_parent(parent):
        threading.Thread(target=look, daemon=True).start()


def watch_parent(parent: int, command: list[str], *, pause: float = 0.3) -> int:
    """The way of other systems: stay between the two, look whether the parent lives, and take the group along."""
    child = subprocess.Popen(command)  # noqa: S603 (the supervisor's own list of programs)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, pass_on)
    while child.poll() is None:
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)
        time.sleep(pause)
    return child.returncode


def main(arguments: list[str]) -> int:
    parent, command = int(arguments[0]), arguments[1:]
    if tie_to_parent(parent):
        os.execvp(command[0], command)  # noqa: S606 (it shall become that program, without a shell)
    return watch_parent(parent, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
