"""A scorer in thirty lines to copy, which prefers short steps: `STEPMARK_SECRET=… python reference_scorer.py 9000`."""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["STEPMARK_SECRET"].encode()
ANSWERS: dict[str, object] = {}


class ReferenceScorerHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        timestamp, signature = self.headers["X-Stepmark-Timestamp"], self.headers["X-Stepmark-Signature"]
        expected = hmac.new(SECRET, f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(f"sha256={expected}", signature) or abs(time.time() - int(timestamp)) > 300:
            self.answer(401, {"error": "the signature is wrong or too old"})
            return
        key = self.headers["Idempotency-Key"]
        if key not in ANSWERS:  # a retry gets the same answer
            scores = [[1 / (1 + len(step) / 200) for step in trace["steps"]] for trace in json.loads(body)["traces"]]
            ANSWERS[key] = {"model": "short-steps", "digest": "v1", "scores": scores}
        self.answer(200, ANSWERS[key])

    def answer(self, status: int, content: object) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), ReferenceScorerHandler).serve_forever()
