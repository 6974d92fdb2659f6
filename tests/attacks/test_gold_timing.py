"""The response time of a submit does not reveal whether a trace is hidden gold.

At most 4,000 submits over HTTP, half of them of gold, in random order. The statistic is the AUC: how often a submit of
gold takes longer than a submit of work. 0.5 means that the times tell nothing. Only submits of the same block of 40 are
compared, so that a machine whose load changes adds noise to both alike. The standard error after all submits is 0.0092.
So the last limit refuses 0.1 % of runs without any difference, and lets 0.06 % of runs with an AUC of 0.56 pass.

Two earlier looks can only accept. Their limits are so close to 0.5 that they let 0.03 % more of the latter pass, and
most runs without a difference end there.
"""

import json
import random
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from labeling.models import Assignment, Project, Rater, Trace
from labeling.models.gold import GoldUse
from labeling.quality import new_submissions
from labeling.quality.gold import make_gold
from tests import factories, servers

pytestmark = [pytest.mark.fault, pytest.mark.usefixtures("real_connections")]

MAX_DISTANCE = 0.03
EARLY_LOOKS = ((0.5, 0.012), (0.62, 0.018))  # the share of the submits, and the distance that ends the test
RATERS, GOLD, WORK = 20, 100, 1000  # each gold trace is submitted by every rater, each work trace by two
WARM_UP, PER_BLOCK = 40, 20
STEPS = 3
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@pytest.fixture
def port(tmp_path: Path, broker: str) -> Iterator[int]:
    log = tmp_path / "log"
    env = servers.process_environment(tmp_path, broker=broker) | {"STEPMARK_RATE_LIMIT_FACTOR": "0"}
    server = servers.start_web_server(bind="127.0.0.1:0", env=env, log=log)
    try:
        servers.wait_until(lambda: server.says("Booting worker"), what="the web server")
        yield int(re.findall(r"Listening at: http://127.0.0.1:(\d+)", log.read_text())[0])
    finally:
        server.kill()


@pytest.mark.slow
def test_time_of_a_submit_does_not_tell_gold(port: int) -> None:
    project = factories.make_project(overlap=2, gold_bar=0.8)
    raters = [factories.make_rater(project) for _ in range(RATERS)]
    gold, work = make_assignments(project, raters)
    dice = random.Random(1)
    dice.shuffle(gold)
    dice.shuffle(work)
    browsers = {rater.pk: Browser(port, rater) for rater in raters}
    for assignment in [*gold[:WARM_UP], *work[:WARM_UP]]:
        browsers[assignment.rater_id].submit(assignment)
    n_longer, n_pairs, n_submitted = 0.0, 0, WARM_UP
    for start in range(WARM_UP, len(gold), PER_BLOCK):
        block = [(each, "gold") for each in gold[start : start + PER_BLOCK]]
        block += [(each, "work") for each in work[start : start + PER_BLOCK]]
        dice.shuffle(block)
        seconds: dict[str, list[float]] = {"gold": [], "work": []}
        for assignment, kind in block:
            seconds[kind].append(browsers[assignment.rater_id].submit(assignment))
        pairs = [(one, other) for one in seconds["gold"] for other in seconds["work"]]
        n_longer += sum((one > other) + 0.5 * (one == other) for one, other in pairs)
        n_pairs += len(pairs)
        n_submitted += PER_BLOCK
        if is_close_enough(n_longer / n_pairs, n_submitted / len(gold)):
            break
    for browser in browsers.values():
        browser.line.close()
    auc = n_longer / n_pairs
    print(f"AUC {auc:.4f} of {2 * n_submitted} submits")  # noqa: T201  shown if the test fails
    assert n_submitted >= EARLY_LOOKS[0][0] * len(gold)
    assert n_pairs == (n_submitted - WARM_UP) * PER_BLOCK
    assert abs(auc - 0.5) <= MAX_DISTANCE, auc
    processed = new_submissions.process_new_submissions(now=factories.NOW.replace(year=2100), limit=10**6)
    assert processed == 2 * n_submitted


def is_close_enough(auc: float, share: float) -> bool:
    return any(share == look and abs(auc - 0.5) <= distance for look, distance in EARLY_LOOKS)


def make_assignments(project: Project, raters: list[Rater]) -> tuple[list[Assignment], list[Assignment]]:
    """Return open assignments of gold and of work."""
    gold, work = ([factories.make_trace(project, ["Step."] * STEPS) for _ in range(n)] for n in (GOLD, WORK))
    for trace in gold:
        make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=factories.NOW)
    pairs = [(rater, trace, "gold") for rater in raters for trace in gold]
    pairs += [(raters[(n + k) % RATERS], trace, "work") for n, trace in enumerate(work) for k in (0, 1)]
    rows = Assignment.objects.bulk_create([open_assignment(*pair) for pair in pairs], batch_size=500)
    return rows[: len(gold) * RATERS], rows[len(gold) * RATERS :]


def open_assignment(rater: Rater, trace: Trace, purpose: str) -> Assignment:
    times = dict.fromkeys(("held_at", "opened_at"), factories.NOW)
    ends_at = factories.NOW.replace(year=2100)
    columns = {"purpose": purpose, "state": "opened", "holds_slot": True, "lease_ends_at": ends_at}
    return Assignment(project_id=rater.project_id, rater=rater, trace=trace, **columns, **times)


class Browser:
    """One rater with one connection."""

    def __init__(self, port: int, rater: Rater) -> None:
        client, token = Client(), "b" * 32
        assert rater.user is not None
        client.force_login(rater.user)
        session = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
        self.head = (
            f" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {session}; {settings.CSRF_COOKIE_NAME}={token}\r\n"
            f"X-CSRFToken: {token}\r\nContent-Type: application/json\r\nContent-Length: "
        )
        self.line = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def submit(self, assignment: Assignment) -> float:
        """Submit ratings without an error. Return the seconds until the response was complete."""
        write = {"seen": 0, "kind": "rate", "option": 0, "rating": 1, "active_ms": 900}
        writes = [{**write, "sequence": step + 1, "step": step} for step in range(STEPS)]
        body = json.dumps({"client": "c1", "writes": writes})
        message = f"POST /work/{assignment.pk}/submit{self.head}{len(body)}\r\n\r\n{body}".encode()
        began = time.perf_counter()
        self.line.sendall(message)
        received = b""
        while not self._is_complete(received):
            received += self.line.recv(65536)
        seconds = time.perf_counter() - began
        assert received.startswith(b"HTTP/1.1 200"), received
        return seconds

    @staticmethod
    def _is_complete(received: bytes) -> bool:
        head, end, body = received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        return bool(end and length and len(body) >= int(length[1]))
