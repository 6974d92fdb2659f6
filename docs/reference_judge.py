"""A chat endpoint without a model, to try judges without a GPU: `python reference_judge.py 9100`.

It speaks OpenAI's protocol and answers with the first step that contains a false sum such as "2 + 2 = 5".
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STEP = re.compile(r"<step_(\d+)>\n(.*?)\n</step_\1>", re.S)
SUM = re.compile(r"(\d+) ([+*-]) (\d+) = (\d+)")
OPERATIONS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def has_false_sum(text: str) -> bool:
    return any(OPERATIONS[sign](int(a), int(b)) != int(result) for a, sign, b, result in SUM.findall(text))


def judge(prompt: str) -> str:
    wrong = [number for number, text in STEP.findall(prompt) if has_false_sum(text)]
    return (
        f"The first false sum is in step {wrong[0]}. \\boxed{{{wrong[0]}}}" if wrong else "No sum is false. \\boxed{-1}"
    )


class ReferenceJudgeHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = request["messages"][-1]["content"]
        text = judge(prompt)
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        content = json.dumps({"model": request["model"], "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), ReferenceJudgeHandler).serve_forever()
