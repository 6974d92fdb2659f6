"""Fork a process that shares the loaded memory of this one."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable

from host import processes


class ForkedProcess:
    """The interface of a process that `SupervisedChild` needs, for a forked one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            gone, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if gone else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        ends = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if ends is not None and time.monotonic() > ends:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(0.02)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


def fork_process(name: str, act: Callable[[], int], *, output: int) -> ForkedProcess:
    """Fork a process that runs `act` in its own process group and dies with this process."""
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _run_in_child(name, act, parent, output)
    with contextlib.suppress(OSError):  # parent and child both try; one succeeds
        os.setpgid(pid, pid)
    return ForkedProcess(pid)


def _run_in_child(name: str, act: Callable[[], int], parent: int, output: int) -> None:
    """Run `act` and exit; never return into the parent's code."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        processes.exit_with_parent(parent)
        processes.set_process_name(f"stepmark-{name}")
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = act()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(bool(error.code))
    except BaseException:  # noqa: BLE001 (any error ends this process)
        os.write(2, traceback.format_exc().encode(errors="replace"))
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
