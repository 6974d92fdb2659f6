"""A completions server over real HTTP that writes the next steps of a solution, as vLLM, SGLang or llama.cpp do.

Its options depend only on the prompt, the seed and the index, so a request that is sent again has the same answer.
"""

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BATCH_TOKENS = 16


@dataclass(frozen=True)
class ScriptedStep:
    """One option. `end`: "step", "eos" or "length"."""

    text: str
    end: str = "step"

    @property
    def n_tokens(self) -> int:
        return max(1, len(self.text.split()))


Script = Callable[[str, int, int], ScriptedStep]  # from prompt, seed and index


def write_sums(prompt: str, seed: int, index: int) -> ScriptedStep:
    """Add one number per step, sometimes wrongly, and end after four steps."""
    digest = hashlib.sha256(f"{prompt}\x1f{seed}\x1f{index}".encode()).hexdigest()
    n_steps, value = prompt.count("So far"), int(digest[:2], 16)
    if n_steps >= 3:
        return ScriptedStep(f"So far {value} in all. The answer is \\boxed{{{value}}}.", "eos")
    return ScriptedStep(f"So far we have {value} after adding {n_steps + 1} numbers.")


@dataclass
class StepServer:
    """Answers in `seconds_per_batch` for each sixteen tokens of the longest option. Without `is_up` it refuses."""

    script: Script = write_sums
    seconds_per_batch: float = 0.0
    version: str = "0.11.2"
    key: str = ""
    is_up: bool = True
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, headers: Any, body: dict[str, Any]) -> tuple[int, Any]:
        with self._lock:
            self.requests.append(body)
            self.paths.append(path)
        if not self.is_up:
            return 503, {"error": "down"}
        if self.key and headers.get("Authorization") != f"Bearer {self.key}":
            return 401, {"error": "Unauthorized"}
        prompt = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
        n = body.get("n") or body.get("n_cmpl") or 1
        steps = [self.script(prompt, body.get("seed", 0), index) for index in range(n)]
        time.sleep(self.seconds_per_batch * max(-(-step.n_tokens // BATCH_TOKENS) for step in steps))
        if path == "/completion":
            return 200, [make_llama_choice(step, index, body) for index, step in enumerate(steps)]
        is_chat = path == "/v1/chat/completions"
        choices = [
            make_message(step, index) if is_chat else make_choice(step, index, body) for index, step in enumerate(steps)
        ]
        tokens = {"prompt_tokens": len(prompt.split()), "completion_tokens": sum(step.n_tokens for step in steps)}
        return 200, {"id": "cmpl-1", "model": body["model"], "choices": choices, "usage": tokens}


def make_choice(step: ScriptedStep, index: int, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": index,
        "text": step.text,
        "finish_reason": "length" if step.end == "length" else "stop",
        "stop_reason": body["stop"][0] if step.end == "step" else None,
        "token_ids": list(range(step.n_tokens)),
        "logprobs": {"token_logprobs": [-0.5] * step.n_tokens},
    }


def make_llama_choice(step: ScriptedStep, index: int, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": index,
        "content": step.text,
        "stop_type": {"step": "word", "eos": "eos", "length": "limit"}[step.end],
        "stopping_word": body["stop"][0] if step.end == "step" else "",
        "tokens_evaluated": 10,
        "tokens_predicted": step.n_tokens,
        "completion_probabilities": [{"id": n, "logprob": -0.25} for n in range(step.n_tokens)],
        "model": "scripted",
    }


def make_message(step: ScriptedStep, index: int) -> dict[str, Any]:
    content = json.dumps({"step": step.text, "is_last": step.end == "eos"})
    reason = "length" if step.end == "length" else "stop"
    return {"index": index, "message": {"role": "assistant", "content": content}, "finish_reason": reason}


class StepHttpServer(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


@contextlib.contextmanager
def running_steps(server: StepServer, *, port: int = 0) -> Iterator[str]:
    """Run the server, and yield the root of its API."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_json(200, {"version": server.version})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_json(*server.answer(self.path, self.headers, body))

        def send_json(self, status: int, content: Any) -> None:
            data = json.dumps(content).encode()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = StepHttpServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/v1"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
