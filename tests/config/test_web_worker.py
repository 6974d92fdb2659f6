"""The web server's process ends with an error of its main thread, so that another one replaces it."""

import os
import re
import signal
import sys
from http.client import HTTPConnection
from pathlib import Path

from tests import servers

END_SECONDS = 20.0  # the master gives up on a silent process after a minute


def test_a_process_that_is_aborted_waits_for_no_idle_thread(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gunicorn", "--config", "config/gunicorn.py", "--bind", "127.0.0.1:0"]
    log = tmp_path / "log"
    server = servers.ServerProcess(*command, "tests.attacks.plain_application", log=log)
    try:
        servers.wait_until(lambda: server.says("Booting worker"), what="the web server")
        (port,) = re.findall(r"Listening at: http://127.0.0.1:(\d+)", log.read_text())
        line = HTTPConnection("127.0.0.1", int(port), timeout=30)
        line.request("GET", "/size/1")  # starts a thread
        assert line.getresponse().read() == b"x"
        line.close()
        (worker,) = re.findall(r"Booting worker with pid: (\d+)", log.read_text())
        os.kill(int(worker), signal.SIGABRT)
        booted = re.compile(r"Booting worker")
        servers.wait_until(
            lambda: len(booted.findall(log.read_text())) == 2, within=END_SECONDS, what="the next process"
        )
    finally:
        server.kill()
