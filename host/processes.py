"""End a process together with the one that started it, so that `kill -9` of the supervisor leaves nothing behind.

Run as a script, it guards one program: `python -I processes.py PARENT_PID SIGNAL_NUMBER PROGRAM [ARGUMENT…]`. Forked
processes all have the command line of their parent, so they also get names for `top` and `ps`.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from types import FrameType

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
MADV_PAGEOUT = 21
ENDS_WITHIN = 5.0


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> bool:
    """Ask the kernel to send this process a signal when its parent dies. Return False if the kernel cannot."""
    if not sys.platform.startswith("linux"):
        return False
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:  # the parent died before the kernel took the request
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def set_process_name(name: str) -> None:
    """Set the name of this process. Linux keeps fifteen characters; other systems show the command line."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def return_free_memory() -> None:
    """Return memory that the allocator keeps for later to the system, where the C library can."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def page_out_files() -> None:
    """Drop the pages of libraries that no other process uses from memory. They are read again when they are needed."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        with open("/proc/self/maps") as maps:
            lines = maps.read().splitlines()
        for line in lines:
            addresses, _mode, _offset, _device, inode = line.split()[:5]
            if inode != "0":
                begin, end = (int(address, 16) for address in addresses.split("-"))
                libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), MADV_PAGEOUT)


def exit_with_parent(parent: int, *, pause: float = 0.3) -> None:
    """Tie a forked process to its parent. Where the kernel cannot help, a thread polls the parent."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(pause)
        os.kill(os.getpid(), signal.SIGKILL)

    if not die_with_parent(parent):
        threading.Thread(target=look, daemon=True).start()


def guard_command(parent: int, command: list[str], *, number: int = signal.SIGKILL, pause: float = 0.3) -> int:
    """Run the program as a child, poll the parent, and end the process group after the parent's death."""
    child = subprocess.Popen(command)  # noqa: S603 (the supervisor's own list of programs)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    for passed in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(passed, pass_on)
    while child.poll() is None:
        if os.getppid() != parent:
            _end_group(child, number)
        time.sleep(pause)
    return child.returncode


def _end_group(child: subprocess.Popen[bytes], number: int) -> None:
    if number != signal.SIGKILL:
        child.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(ENDS_WITHIN)
    os.killpg(0, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    parent, number, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    if die_with_parent(parent, number):
        os.execvp(command[0], command)  # noqa: S606 (this process becomes the program, without a shell)
    return guard_command(parent, command, number=number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
