"""External scorers over real HTTP: a fake of vLLM's pooling runner, and the reference scorer."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests import servers
from tests.conventions.rule import ROOT

# Real output of Qwen2.5-Math-PRM-7B for a published example of four steps; the second is wrong.
PUBLISHED = [[0.0006, 0.9995], [0.8188, 0.1813], [0.0255, 0.9746], [0.0004, 0.9995]]

Rows = Callable[[str], list[Any]]


class FakeVllmServer:
    """Answers POST /pooling as `vllm serve --runner pooling` does: a row for each step tag of each prompt."""

    def __init__(self, *, tag: str = "<extra_0>", token: str = "", rows: Rows | None = None) -> None:
        self.tag, self.token, self.rows = tag, token, rows or self._rows
        self.statuses: list[int] = []  # for the next requests, before normal answers
        self.delay = 0.0
        self.requests: list[dict[str, Any]] = []

    def _rows(self, prompt: str) -> list[Any]:
        return [PUBLISHED[n % 4] for n in range(prompt.count(self.tag))]

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        if self.token and headers.get("Authorization") != f"Bearer {self.token}":
            return 401, {"error": "Unauthorized"}
        if path != "/pooling":
            return 404, {"detail": "Not Found"}
        request = json.loads(body)
        self.requests.append(request)
        time.sleep(self.delay)
        if self.statuses:
            return self.statuses.pop(0), {"error": {"message": "busy", "type": "ServiceUnavailable"}}
        if request.get("task") != "token_classify":
            return 400, {"error": {"message": "unsupported task"}}
        prompts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        data = [{"index": n, "object": "pooling", "data": self.rows(prompt)} for n, prompt in enumerate(prompts)]
        return 200, {"id": "pool-1", "object": "list", "model": request["model"], "data": data, "usage": {}}


@contextlib.contextmanager
def running_scorer(scorer: FakeVllmServer, *, port: int = 0) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, content = scorer.answer(self.path, dict(self.headers), body)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client may have gone
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def running_reference_scorer(secret: str) -> Iterator[str]:
    """Run the reference scorer of the documentation as a process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, str(ROOT / "docs" / "reference_scorer.py"), str(port)]
    process = subprocess.Popen(program, env={**os.environ, "STEPMARK_SECRET": secret}, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(port: int) -> None:
    def answers() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    servers.wait_until(answers, what="the reference scorer")
