"""Rate five hundred steps on the page while the server is killed and the network disconnected. Afterwards the server
has the last rating of each step and the whole history."""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from playwright.sync_api import Browser

from accounts.models import User
from labeling.models import Judgment, Project, RatingEdit, Submission
from people.models import Membership
from tests import factories
from tests.faults.browser_raters import BrowserRater, FaultInjector, KillableServer, logged_in_context, running_chromium

pytestmark = [
    pytest.mark.fault,
    pytest.mark.django_db(transaction=True),
]
SEED = int(os.environ.get("FAULT_SEED", "20261118"))
RATINGS = 500
TRACES, STEPS = 10, 50


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[Browser]:
    # Playwright runs an event loop in this thread, so Django forbids queries in it and gives it a separate connection.
    # Allow queries, and keep the connection until the browser is closed.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with running_chromium() as started:
        connection.ensure_connection()
        yield started
        connections.close_all()


@pytest.fixture
def server(browser: Browser, tmp_path: Path, broker: str, real_connections: None) -> Iterator[KillableServer]:
    made = KillableServer(tmp_path, broker)
    try:
        yield made
    finally:
        made.kill()


def make_work(traces: int, steps: int) -> tuple[Project, User]:
    with transaction.atomic():
        project = factories.make_project(protocol="every_step", overlap=1)
        lane = factories.make_lane(project)
        for _ in range(traces):
            factories.make_entry(lane, factories.make_trace(project, [f"Step {n}." for n in range(steps)]))
        user = factories.make_user()
        factories.make_rater(project, user)
        Membership.objects.create(project=project, user=user, role="annotator", joined_at=timezone.now())
    return project, user


def current_ratings() -> dict[tuple[int, int], int | None]:
    cells = Judgment.objects.values_list("turn__assignment", "turn__step__position", "rating")
    return {(assignment, step): rating for assignment, step, rating in cells}


def test_server_has_the_last_ratings_of_one_client(server: KillableServer, browser: Browser) -> None:
    chance = random.Random(SEED)
    project, user = make_work(TRACES + 2, STEPS)
    faults = FaultInjector(server, chance, every=40)
    context = logged_in_context(browser, server, user)
    faults.contexts = [context]
    rater = BrowserRater(context, project.slug, faults)
    for number in range(TRACES):
        rate_one_trace(rater, chance)
        rater.submit()
        if number == TRACES // 2:
            faults.end_faults()
            rater.close_the_tab()
    faults.end_faults()
    rater.wait_until_saved()
    assert (faults.kills, faults.cuts) > (1, 1)
    assert len(rater.ratings) == RATINGS
    assert current_ratings() == rater.ratings
    assert Submission.objects.count() == TRACES
    edits = RatingEdit.objects.values_list("assignment", "step", "rating")
    assert Counter(edits) == Counter(rater.history)


def rate_one_trace(rater: BrowserRater, chance: random.Random) -> None:
    """Rate all steps, and sometimes change or undo a rating."""
    assignment = rater.ready()
    for step in range(STEPS):
        rating = chance.choice([-1, 0, 1])
        rater.rate(assignment, step, rating)
        if step == STEPS - 1:
            break  # the last step stays current
        if chance.random() < 0.1:
            rater.page.keyboard.press("k")
            rater.rate(assignment, step, -rating)
        elif chance.random() < 0.1:
            rater.undo(assignment, step, None)
            rater.rate(assignment, step, rating)


def test_conflicts_of_two_clients_are_merged_by_the_rule_with_the_whole_history(
    server: KillableServer, browser: Browser
) -> None:
    chance, steps = random.Random(SEED + 1), 25
    project, user = make_work(2, steps)
    faults = FaultInjector(server, chance, every=40)
    with ExitStack() as closing:
        raters = []
        for _ in range(2):
            context = logged_in_context(browser, server, user)
            closing.callback(context.close)
            faults.contexts.append(context)
            raters.append(BrowserRater(context, project.slug, faults))
        assignment = raters[0].ready()
        assert raters[1].ready() == assignment
        for part in range(RATINGS // steps):
            rate_all_steps(raters[part % 2], assignment, steps, chance)
        faults.end_faults()
        for rater in raters:
            rater.wait_until_saved()
    assert (faults.kills, faults.cuts) > (0, 0)
    assert edits_by_client() == sorted(rater.history for rater in raters)
    assert current_ratings() == merge_history(assignment)


def rate_all_steps(rater: BrowserRater, assignment: int, steps: int, chance: random.Random) -> None:
    rater.page.locator("#step-0 .step__no").click()
    for step in range(steps):
        rater.rate(assignment, step, chance.choice([-1, 0, 1]))


def edits_by_client() -> list[list[tuple[int, int, int | None]]]:
    """Return the edits of each client in the client's order."""
    edits = defaultdict(list)
    for write in RatingEdit.objects.order_by("sequence"):
        edits[write.client].append((write.assignment_id, write.step, write.rating))
    return sorted(edits.values())


def merge_history(assignment: int) -> dict[tuple[int, int], int | None]:
    """Merge the history independently of the product code: of one client's edits, the highest sequence wins; of two
    clients' edits, the one based on the higher version, otherwise the later one."""
    standing: dict[int, RatingEdit] = {}
    for write in RatingEdit.objects.filter(assignment=assignment).order_by("version", "sequence"):
        before = standing.get(write.step)
        is_own = before is not None and before.client == write.client
        if before is None or is_own or write.seen >= before.seen:
            standing[write.step] = write
    return {(assignment, step): write.rating for step, write in standing.items()}
