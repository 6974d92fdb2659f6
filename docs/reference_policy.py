"""A completions server without a model, to try live labeling without a GPU: `python reference_policy.py 9100`.

It adds the numbers of a problem one by one and sometimes miscalculates. Its answer depends only on the prompt, the seed
and the index of the option, so recorded requests can be replayed.
"""

import hashlib
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NUMBERS = re.compile(r"[Aa]dd ([\d, and]+)")
RESULT = re.compile(r"= (\d+)")


def write_step(prompt: str, dice: int) -> tuple[str, bool]:
    """Return the next step, and whether it ends the solution."""
    numbers = [int(number) for number in re.findall(r"\d+", (NUMBERS.findall(prompt) or ["1 and 2"])[-1])]
    results = [int(number) for number in RESULT.findall(prompt.rpartition("Solution:")[2])]
    total = results[-1] if results else numbers[0]
    if len(results) >= len(numbers) - 1:
        return f"So the answer is \\boxed{{{total}}}.", True
    more = numbers[len(results) + 1]
    wrong = (0, 0, 0, 1, 10)[dice % 5]
    return f"{('Now', 'Next', 'Then')[dice % 3]} we add {more}: {total} + {more} = {total + more + wrong}.", False


def make_choice(prompt: str, seed: int, index: int, stop: list[str]) -> dict[str, Any]:
    dice = int(hashlib.sha256(f"{prompt} {seed} {index}".encode()).hexdigest()[:8], 16)
    text, is_last = write_step(prompt, dice)
    return {"index": index, "text": text, "finish_reason": "stop", "stop_reason": None if is_last else stop[0]}


class ReferencePolicyHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_json({"version": "reference"})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt, seed, n = request["prompt"], request.get("seed", 0), request.get("n", 1)
        choices = [make_choice(prompt, seed, index, request["stop"]) for index in range(n)]
        tokens = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 12 * n}
        self.send_json({"model": request["model"], "choices": choices, "usage": tokens})

    def send_json(self, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), ReferencePolicyHandler).serve_forever()
