"""A webhook receiver and a mail server that keep all messages."""

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class WebhookReceiver:
    """Answers with `statuses` in turn, then with 204, after `delay` seconds."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.delay = 0.0
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.address = ""

    @property
    def notices(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _headers, body in self.requests]


@contextmanager
def running_receiver() -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append((dict(self.headers), body))
            time.sleep(receiver.delay)
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        receiver.address = f"http://127.0.0.1:{port}/hook?a=1"
        yield receiver


class MailServer:
    """Refuses the next `refusals` messages with a temporary error."""

    def __init__(self) -> None:
        self.refusals = 0
        self.mails: list[EmailMessage] = []
        self.port = 0


class _MailSocket(socketserver.ThreadingTCPServer):
    def __init__(self, state: MailServer) -> None:
        super().__init__(("127.0.0.1", 0), _MailHandler)
        self.state = state


class _MailHandler(socketserver.StreamRequestHandler):
    server: _MailSocket

    def handle(self) -> None:
        self._say(220)
        while line := self.rfile.readline().strip().upper():
            if line == b"DATA":
                self._say(354)
                self._take_mail()
            elif line == b"QUIT":
                self._say(221)
                return
            else:
                self._say(250)

    def _take_mail(self) -> None:
        lines, state = [], self.server.state
        while (line := self.rfile.readline()) not in {b".\r\n", b""}:
            lines.append(line.removeprefix(b"."))
        if state.refusals:
            state.refusals -= 1
            self._say(451)
            return
        state.mails.append(message_from_string(b"".join(lines).decode(), policy=policy.default))
        self._say(250)

    def _say(self, code: int) -> None:
        self.wfile.write(b"%d ok\r\n" % code)


@contextmanager
def running_mail_server() -> Iterator[MailServer]:
    server = MailServer()
    with _serving(_MailSocket(server)) as port:
        server.port = port
        yield server


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
