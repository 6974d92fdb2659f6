"""Raters who work over HTTP, each with its own connection. They share the cores with the server, so the code is light:
one thread, plain sockets, and minimal parsing of responses."""

import json
import re
import selectors
import socket
import statistics
import time
from typing import Any

STEPS = 12
THINK_SECONDS = 0.3  # seconds
TOKEN = "b" * 32  # the CSRF check only compares cookie and header
WAITS = ("claim", "record", "submit")
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_ASSIGNMENT = re.compile(rb'"assignment":(\d+)')


class HttpRater:
    """Repeats claim, one batch with a rating for each step, and submit, with one request at a time."""

    def __init__(self, port: int, session: str, slug: str, number: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.waits: dict[str, list[float]] = {name: [] for name in WAITS}
        self.cycles = self.errors = 0
        self.is_through = False
        self.head = (
            f" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: sessionid={session}; csrftoken={TOKEN}\r\n"
            f"X-CSRFToken: {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: "
        )
        client = f"{number:032x}"
        writes = [
            {"sequence": n + 1, "seen": 0, "kind": "rate", "step": n, "option": 0, "rating": 1, "active_ms": 900}
            for n in range(STEPS)
        ]
        self.claiming = self.message(f"/work/{slug}/claim", {"opened": True})
        self.bodies = {"record": {"client": client, "writes": writes}, "submit": {"client": client, "writes": []}}
        self.tails = {name: self.message("", body) for name, body in self.bodies.items()}

    def message(self, path: str, body: object) -> bytes:
        text = json.dumps(body)
        return f"{path}{self.head}{len(text)}\r\n\r\n{text}".encode()

    def claim(self) -> None:
        self.send("claim", b"POST " + self.claiming)

    def send(self, name: str, message: bytes) -> None:
        self.name, self.answer, self.began_at = name, b"", time.perf_counter()
        self.socket.sendall(message)

    def hear(self) -> None:
        """Read a part of the response, and send the next request when the response is complete."""
        received = self.socket.recv(65536)
        self.answer += received
        head, _, body = self.answer.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if received and (length is None or len(body) < int(length[1])):
            return
        self.waits[self.name].append(time.perf_counter() - self.began_at)
        if not self.answer.startswith(b"HTTP/1.1 200"):
            self.fail()
        else:
            self.go_on(body)

    def fail(self) -> None:
        """Count an error and stop this rater, so that its other measurements stay valid."""
        if not self.errors:
            print(f"{self.name}: {self.answer[:400]!r}")
        self.errors, self.is_through = self.errors + 1, True

    def go_on(self, body: bytes) -> None:
        if self.name == "submit":
            self.cycles += 1
            self.claim()
            return
        if self.name == "claim":
            found = _ASSIGNMENT.search(body)
            self.assignment = found[1] if found else b"0"
        following = "record" if self.name == "claim" else "submit"
        path = b"POST /work/%s/%s" % (self.assignment, following.encode())
        self.send(following, path + self.tails[following])


class ThinkingHttpRater(HttpRater):
    """A rater that waits for a while before each request, as if reading."""

    due, waiting = 0.0, ("", b"")

    def send(self, name: str, message: bytes) -> None:
        self.due, self.waiting = time.perf_counter() + THINK_SECONDS, (name, message)

    def go_on_when_due(self) -> None:
        if self.waiting[0] and time.perf_counter() >= self.due:
            (name, message), self.waiting = self.waiting, ("", b"")
            super().send(name, message)


def run_raters(
    port: int, sessions: list[str], *, seconds: float, slug: str = "bench", who: type[HttpRater] = HttpRater
) -> dict[str, Any]:
    raters = [who(port, session, slug, n + 1) for n, session in enumerate(sessions)]
    began_at, cpu = time.perf_counter(), time.process_time()
    run_round(raters, began_at + seconds)
    return {
        "cycles": sum(rater.cycles for rater in raters),
        "seconds": time.perf_counter() - began_at,
        "cpu_seconds": time.process_time() - cpu,
        "errors": sum(rater.errors for rater in raters),
        "waits_ms": {name: summarize_waits([wait for rater in raters for wait in rater.waits[name]]) for name in WAITS},
    }


def run_round(raters: list[HttpRater], until: float) -> None:
    with selectors.DefaultSelector() as selector:
        for rater in raters:
            selector.register(rater.socket, selectors.EVENT_READ, rater)
            rater.claim()
        while time.perf_counter() < until and selector.get_map():
            for thinking in (rater for rater in raters if isinstance(rater, ThinkingHttpRater)):
                thinking.go_on_when_due()
            for key, _ in selector.select(timeout=0.005 if isinstance(raters[0], ThinkingHttpRater) else 1):
                key.data.hear()
                if key.data.is_through:
                    selector.unregister(key.fileobj)
    for rater in raters:
        rater.socket.close()


def summarize_waits(waits: list[float]) -> dict[str, float]:
    if len(waits) < 20:
        return {"median": 0.0, "p95": 0.0}
    return {
        "median": round(1000 * statistics.median(waits), 2),
        "p95": round(1000 * statistics.quantiles(waits, n=20)[-1], 2),
    }
