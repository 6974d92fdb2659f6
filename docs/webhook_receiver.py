"""Receive notices and check that they come from the platform: `SECRET=whsec_… python webhook_receiver.py 9100`."""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["SECRET"].encode()
MAX_AGE_SECONDS = 300
seen: set[int] = set()  # in your program: a table with a unique column


class NoticeHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        sent_at = self.headers["X-Stepmark-Timestamp"]
        expected = "sha256=" + hmac.new(SECRET, f"{sent_at}.".encode() + body, hashlib.sha256).hexdigest()
        is_genuine = hmac.compare_digest(expected, self.headers["X-Stepmark-Signature"])
        if not is_genuine or abs(time.time() - int(sent_at)) > MAX_AGE_SECONDS:
            self.send_error(401)
            return
        notice = json.loads(body)
        if notice["id"] not in seen:  # a notice can arrive twice
            seen.add(notice["id"])
            print(notice["type"], notice["data"], flush=True)
        self.send_response(204)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), NoticeHandler).serve_forever()
