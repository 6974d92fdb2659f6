"""Sixteen raters at work over HTTP, each with a connection of its own. Light on purpose: it shares the cores."""

import http.client
import json
import statistics
import threading
import time
from typing import Any

STEPS = 12
TOKEN = "b" * 32  # the CSRF check compares cookie and header
WAITS = ("claim", "record", "submit")


class RaterAtWork:
    def __init__(self, port: int, session: str, slug: str, number: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.slug, self.client = slug, f"{number:032x}"
        self.headers = {
            "Cookie": f"sessionid={session}; csrftoken={TOKEN}",
            "X-CSRFToken": TOKEN,
            "Content-Type": "application/json",
        }
        self.waits: dict[str, list[float]] = {name: [] for name in WAITS}
        self.cycles = self.errors = 0
        writes = [
            {"sequence": n + 1, "seen": 0, "kind": "rate", "step": n, "option": 0, "rating": 1, "active_ms": 900}
            for n in range(STEPS)
        ]
        self.batch = json.dumps({"client": self.client, "writes": writes}).encode()
        self.farewell = json.dumps({"client": self.client, "writes": []}).encode()

    def go_round(self, until: float) -> None:
        while time.perf_counter() < until:
            assignment = self.claim()
            if assignment is None:
                return
            if self.post("record", f"/work/{assignment}/record", self.batch) and self.post(
                "submit", f"/work/{assignment}/submit", self.farewell
            ):
                self.cycles += 1

    def claim(self) -> int | None:
        body = self.post("claim", f"/work/{self.slug}/claim", b'{"opened": true}')
        return int(json.loads(body)["assignment"]) if body else None

    def post(self, name: str, path: str, body: bytes) -> bytes:
        began = time.perf_counter()
        self.connection.request("POST", path, body, self.headers)
        response = self.connection.getresponse()
        content = response.read()
        self.waits[name].append(time.perf_counter() - began)
        if response.status != 200:
            self.errors += 1
            if self.errors == 1:
                print(f"{name}: {response.status} {content[:300]!r}")
            return b""
        return content


def run(port: int, sessions: list[str], *, seconds: float, slug: str = "bench") -> dict[str, Any]:
    raters = [RaterAtWork(port, session, slug, n + 1) for n, session in enumerate(sessions)]
    until = time.perf_counter() + seconds
    threads = [threading.Thread(target=rater.go_round, args=(until,)) for rater in raters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "cycles": sum(rater.cycles for rater in raters),
        "errors": sum(rater.errors for rater in raters),
        "waits_ms": {name: told([wait for rater in raters for wait in rater.waits[name]]) for name in WAITS},
    }


def told(waits: list[float]) -> dict[str, float]:
    if len(waits) < 20:
        return {"median": 0.0, "p95": 0.0}
    return {
        "median": round(1000 * statistics.median(waits), 2),
        "p95": round(1000 * statistics.quantiles(waits, n=20)[-1], 2),
    }
