"""An endpoint over real HTTP that answers from a script: texts, errors, delays, and broken bodies."""

import contextlib
import json
import math
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Scripted:
    """One answer. `cut` sends only this many bytes of the body, and closes the connection."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    finish_reason: str = "stop"
    body: bytes | None = None
    cut: int | None = None
    has_usage: bool = True
    yes_shares: tuple[float, ...] = ()  # P(Yes) of each “Yes” or “No”, stated if log probabilities are asked for


Script = Callable[[dict[str, Any], int], Scripted]


def always(text: str, **fields: Any) -> Script:
    return lambda request, attempt: Scripted(text, **fields)


class ChatServer:
    """Answers POST /v1/chat/completions and /v1/completions as vLLM does. The script gets the request and the number of
    the attempt with this idempotency key, from 1."""

    def __init__(self, script: Script, *, key: str = "") -> None:
        self.script, self.key = script, key
        self.requests: list[dict[str, Any]] = []
        self.attempts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()  # by idempotency key: what a hosted endpoint would charge
        self.n_now = self.most_at_once = 0
        self._lock = threading.Lock()

    def answer(self, path: str, headers: Any, body: bytes) -> Scripted:
        if path not in ("/v1/chat/completions", "/v1/completions"):
            return Scripted(status=404, body=b'{"detail": "Not Found"}')
        if self.key and headers.get("Authorization") != f"Bearer {self.key}":
            return Scripted(status=401, body=b'{"error": "Unauthorized"}')
        request = json.loads(body)
        key = headers["Idempotency-Key"]
        with self._lock:
            self.requests.append(request)
            self.attempts[key] += 1
            attempt = self.attempts[key]
            self.n_now += 1
            self.most_at_once = max(self.most_at_once, self.n_now)
        scripted = self.script(request, attempt)
        time.sleep(scripted.delay)
        with self._lock:
            self.n_now -= 1
            self.answered[key] += scripted.status == 200 and scripted.cut is None
        return scripted


def make_logprobs(text: str, yes_shares: tuple[float, ...]) -> dict[str, Any]:
    """Return the tokens of an answer as vLLM states them: words with the space before, other characters one by one."""
    shares, rows = iter(yes_shares), list[dict[str, Any]]()
    for token in re.findall(r" ?[^\W\d]+|.", text, re.S):
        top = {token: 0.0}
        if token.strip() in ("Yes", "No"):
            share, space = next(shares), token[: -len(token.strip())]
            found = {"Yes": share * 0.98, "No": (1 - share) * 0.98, "Maybe": 0.02}
            top = {space + word: math.log(chance) for word, chance in found.items()}
        candidates = [{"token": each, "logprob": value} for each, value in top.items()]
        rows.append({"token": token, "logprob": top[token], "bytes": list(token.encode()), "top_logprobs": candidates})
    return {"content": rows}


def make_body(request: dict[str, Any], scripted: Scripted) -> bytes:
    if scripted.body is not None:
        return scripted.body
    if scripted.status != 200:
        return json.dumps({"object": "error", "message": "no", "code": scripted.status}).encode()
    is_text = "prompt" in request
    answer = {"text": scripted.text} if is_text else {"message": {"role": "assistant", "content": scripted.text}}
    content: dict[str, Any] = {
        "id": "cmpl-1" if is_text else "chatcmpl-1",
        "object": "text_completion" if is_text else "chat.completion",
        "model": request["model"],
        "choices": [{"index": 0, **answer, "finish_reason": scripted.finish_reason}],
    }
    if request.get("logprobs") and scripted.yes_shares:
        content["choices"][0]["logprobs"] = make_logprobs(scripted.text, scripted.yes_shares)
    if scripted.has_usage:
        content["usage"] = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return json.dumps(content).encode()


@contextlib.contextmanager
def running_chat(chat: ChatServer, *, port: int = 0) -> Iterator[str]:
    """Run the endpoint, and yield the root of its API."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            scripted = chat.answer(self.path, self.headers, body)
            content = make_body(json.loads(body), scripted)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client may have gone
                self.send_response(scripted.status)
                for name, value in scripted.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: scripted.cut])

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    server = Server(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def find_dead_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
