"""An endpoint without a model, to try judges and rollouts without a GPU: `python reference_judge.py 9100`.

It speaks OpenAI's protocol. As a judge, it names the first step that contains a false sum such as "2 + 2 = 5". As a
policy, it continues a solution to the answer, which is wrong if the solution contains a false sum.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STEP = re.compile(r"<step_(\d+)>\n(.*?)\n</step_\1>", re.S)
SUM = re.compile(r"(\d+) ([+*-]) (\d+) = (\d+)")
TASK = re.compile(r"what is ([\d +]+)\?")
OPERATIONS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def has_false_sum(text: str) -> bool:
    return any(OPERATIONS[sign](int(a), int(b)) != int(result) for a, sign, b, result in SUM.findall(text))


def judge(prompt: str) -> str:
    wrong = [number for number, text in STEP.findall(prompt) if has_false_sum(text)]
    return (
        f"The first false sum is in step {wrong[0]}. \\boxed{{{wrong[0]}}}" if wrong else "No sum is false. \\boxed{-1}"
    )


def solve(prompt: str) -> str:
    task = TASK.search(prompt)
    total = sum(map(int, task[1].split("+"))) if task else 0
    return f"So the answer is \\boxed{{{total + has_false_sum(prompt)}}}."


def answer(request: dict[str, Any], path: str) -> dict[str, Any]:
    if path.endswith("/chat/completions"):
        prompt = request["messages"][-1]["content"]
        text = judge(prompt)
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
    else:
        prompt = request["prompt"]
        text = solve(prompt)
        choice = {"text": text}
    usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
    return {"model": request["model"], "choices": [choice | {"index": 0, "finish_reason": "stop"}], "usage": usage}


class ReferenceJudgeHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = json.dumps(answer(request, self.path)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), ReferenceJudgeHandler).serve_forever()
