"""Run gunicorn's worker as a child of this process. Gunicorn's own master would be one more process of eight megabytes.

This process holds the socket, so that browsers wait while a worker that died is replaced.
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gunicorn import sock
from gunicorn.app.wsgiapp import WSGIApplication

from supervisor.children import SupervisedChild
from supervisor.fork import ForkedProcess, fork_process


class WebServer:
    def __init__(self, port: int) -> None:
        sys.argv = ["gunicorn", "--config", "config/gunicorn.py", "--bind", f"127.0.0.1:{port}", "config.wsgi"]
        self.app = WSGIApplication()
        self.cfg: Any = self.app.cfg
        self.log = self.cfg.logger_class(self.cfg)
        # Gunicorn's hooks expect its master.
        self.master = SimpleNamespace(pid=os.getpid(), log=self.log, wait_for_signals=None)
        self.cfg.on_starting(self.master)
        self.sockets = sock.create_sockets(self.cfg, self.log)

    def list_children(self, log: Path) -> list[SupervisedChild]:
        return [SupervisedChild("web", self.start_worker, log) for _ in range(self.cfg.workers)]

    def start_worker(self, *, output: int) -> ForkedProcess:
        half = self.cfg.timeout / 2
        worker = self.cfg.worker_class(1, os.getpid(), self.sockets, self.app, half, self.cfg, self.log)

        def run() -> int:
            worker.pid = os.getpid()
            self.cfg.post_fork(self.master, worker)
            worker.init_process()
            return 0

        return WebProcess(fork_process("web", run, output=output).pid, worker, self.cfg.timeout)


class WebProcess(ForkedProcess):
    """A worker that is killed when it shows no sign of life for a minute."""

    def __init__(self, pid: int, worker: Any, timeout: float) -> None:
        super().__init__(pid)
        self.worker = worker
        self.timeout = timeout

    def poll(self) -> int | None:
        code = super().poll()
        if code is None and time.monotonic() - self.worker.tmp.last_update() > self.timeout:
            os.kill(self.pid, signal.SIGKILL)
        return code
