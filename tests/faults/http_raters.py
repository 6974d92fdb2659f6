"""HTTP clients that rate traces: they repeat each message until they get a response, and record acknowledgments."""

import http.client
import itertools
import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.test import Client

from accounts.models import User

ANY_TOKEN = "f" * 32  # cookie and header only have to be equal


class HttpBrowser:
    """Acts as a rater's browser: sends cookies and JSON, and repeats a message without a response."""

    def __init__(self, url: str, user: User, is_running: Callable[[], bool]) -> None:
        self.address, self.is_running = urlsplit(url).netloc, is_running
        client = Client()
        client.force_login(user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        cookies = {settings.SESSION_COOKIE_NAME: session, settings.CSRF_COOKIE_NAME: ANY_TOKEN}
        self.headers = {
            "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
            "X-CSRFToken": ANY_TOKEN,
            "Content-Type": "application/json",
        }
        self.unanswered = 0

    def send(self, path: str, message: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Return the status and content of the response, or None if the test ends first."""
        while self.is_running():
            answer = self._try(path, json.dumps(message))
            if answer is not None:
                return answer
            self.unanswered += 1
            time.sleep(0.1)
        return None

    def _try(self, path: str, body: str) -> tuple[int, dict[str, Any]] | None:
        line = http.client.HTTPConnection(self.address, timeout=5)
        try:
            line.request("POST", path, body, self.headers)
            response = line.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            line.close()
        return (response.status, json.loads(content)) if response.status < 500 else None


class HttpRaterThread(threading.Thread):
    """Claims traces, rates every step twice, and submits, until the test ends."""

    def __init__(self, browser: HttpBrowser, slug: str, seed: int) -> None:
        super().__init__()
        self.browser, self.slug, self.client = browser, slug, f"browser{seed}"
        self.chance = random.Random(seed)
        self.sequences = itertools.count(1)
        self.acknowledged: dict[tuple[int, str, int], tuple[int, int]] = {}  # (assignment, client, sequence): rating
        self.current_ratings: dict[tuple[int, int], int] = {}  # (assignment, step): the rating last acknowledged
        self.unanswered_write: tuple[int, int] | None = None  # (assignment, step) of a write without a response
        self.submitted: set[int] = set()
        self.refusals: list[object] = []

    def run(self) -> None:
        while self.unanswered_write is None and (claimed := self._send(f"/work/{self.slug}/claim", {"opened": True})):
            for step in claimed["steps"] * 2:
                if self.unanswered_write is None:
                    self._rate(claimed["assignment"], step["position"])
            self._submit(claimed["assignment"])

    def _rate(self, assignment: int, step: int) -> None:
        sequence, rating = next(self.sequences), self.chance.choice([-1, 0, 1])
        write = {"sequence": sequence, "seen": 0, "kind": "rate", "step": step, "option": 0, "rating": rating}
        self.unanswered_write = assignment, step
        if self._send(f"/work/{assignment}/record", {"client": self.client, "writes": [write]}):
            self.acknowledged[assignment, self.client, sequence] = (step, rating)
            self.current_ratings[assignment, step], self.unanswered_write = rating, None

    def _submit(self, assignment: int) -> None:
        if self._send(f"/work/{assignment}/submit", {"client": self.client, "writes": []}):
            self.submitted.add(assignment)

    def _send(self, path: str, message: dict[str, Any]) -> dict[str, Any] | None:
        answer = self.browser.send(path, message)
        if answer is None:
            return None
        status, content = answer
        if status != 200:
            self.refusals.append((path, status, content))
            return None
        return content
