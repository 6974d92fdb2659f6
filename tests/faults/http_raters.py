"""Raters at work over HTTP: they send each message until it is answered, and remember what was acknowledged."""

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

ANY_TOKEN = "f" * 32  # cookie and header must be alike, whatever they are


class HttpBrowser:
    """What a rater's browser does: cookies, JSON, and the same message again when nobody answered."""

    def __init__(self, url: str, user: User, go_on: Callable[[], bool]) -> None:
        self.address, self.go_on = urlsplit(url).netloc, go_on
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
        """The answer; None when time was up before there was one."""
        while self.go_on():
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
    """Claims, rates every step, changes its mind now and then, submits; on and on."""

    def __init__(self, browser: HttpBrowser, slug: str, seed: int) -> None:
        super().__init__()
        self.browser, self.slug, self.client = browser, slug, f"browser{seed}"
        self.chance = random.Random(seed)
        self.sequences = itertools.count(1)
        self.acknowledged: dict[tuple[int, str, int], tuple[int, int]] = {}  # (assignment, client, sequence): rating
        self.standing: dict[tuple[int, int], int] = {}  # (assignment, step): the rating last acknowledged
        self.on_its_way: tuple[int, int] | None = None  # (assignment, step) of a write that nobody has answered
        self.submitted: set[int] = set()
        self.refusals: list[object] = []

    def run(self) -> None:
        while self.on_its_way is None and (claimed := self._send(f"/work/{self.slug}/claim", {"opened": True})):
            for step in claimed["steps"] * 2:
                if self.on_its_way is None:
                    self._rate(claimed["assignment"], step["position"])
            self._submit(claimed["assignment"])

    def _rate(self, assignment: int, step: int) -> None:
        sequence, rating = next(self.sequences), self.chance.choice([-1, 0, 1])
        write = {"sequence": sequence, "seen": 0, "kind": "rate", "step": step, "option": 0, "rating": rating}
        self.on_its_way = assignment, step
        if self._send(f"/work/{assignment}/record", {"client": self.client, "writes": [write]}):
            self.acknowledged[assignment, self.client, sequence] = (step, rating)
            self.standing[assignment, step], self.on_its_way = rating, None

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
