"""Five hundred ratings by the page itself, while the server is killed and the network cut: afterwards the server holds
exactly what was last meant, and the history tells all that was ever said."""

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
    # Playwright runs an event loop in this thread. Django takes that for asynchronous code that must not ask the
    # database, and gives it a connection of its own, which lives from here to the end of the browser.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with running_chromium() as started:
        connection.ensure_connection()
        yield started
        connections.close_all()


@pytest.fixture
def house(browser: Browser, tmp_path: Path, broker: str, real_connections: None) -> Iterator[KillableServer]:
    made = KillableServer(tmp_path, broker)
    try:
        yield made
    finally:
        made.kill()


def lay_out(traces: int, steps: int) -> tuple[Project, User]:
    with transaction.atomic():
        project = factories.make_project(protocol="every_step", overlap=1)
        lane = factories.make_lane(project)
        for _ in range(traces):
            factories.make_entry(lane, factories.make_trace(project, [f"Step {n}." for n in range(steps)]))
        user = factories.make_user()
        factories.make_rater(project, user)
        Membership.objects.create(project=project, user=user, role="annotator", joined_at=timezone.now())
    return project, user


def stands() -> dict[tuple[int, int], int | None]:
    cells = Judgment.objects.values_list("turn__assignment", "turn__step__position", "rating")
    return {(assignment, step): rating for assignment, step, rating in cells}


def test_one_client_ends_with_what_was_last_meant(house: KillableServer, browser: Browser) -> None:
    chance = random.Random(SEED)
    project, user = lay_out(TRACES + 2, STEPS)
    weather = FaultInjector(house, chance, every=40)
    context = logged_in_context(browser, house, user)
    weather.contexts = [context]
    hand = BrowserRater(context, project.slug, weather)
    for number in range(TRACES):
        rate_one_trace(hand, chance)
        hand.submit()
        if number == TRACES // 2:
            weather.clear_up()
            hand.close_the_tab()
    weather.clear_up()
    hand.wait_until_saved()
    assert (weather.kills, weather.cuts) > (1, 1)
    assert len(hand.meant) == RATINGS
    assert stands() == hand.meant
    assert Submission.objects.count() == TRACES
    kept = RatingEdit.objects.values_list("assignment", "step", "rating")
    assert Counter(kept) == Counter(hand.pressed)


def rate_one_trace(hand: BrowserRater, chance: random.Random) -> None:
    """Now and then a person changes their mind, or takes back what was just said."""
    assignment = hand.ready()
    for step in range(STEPS):
        rating = chance.choice([-1, 0, 1])
        hand.rate(assignment, step, rating)
        if step == STEPS - 1:
            break  # the light stays on the last step
        if chance.random() < 0.1:
            hand.page.keyboard.press("k")
            hand.rate(assignment, step, -rating)
        elif chance.random() < 0.1:
            hand.undo(assignment, step, None)
            hand.rate(assignment, step, rating)


def test_two_clients_end_with_the_winner_by_the_rule_and_the_whole_history(
    house: KillableServer, browser: Browser
) -> None:
    chance, steps = random.Random(SEED + 1), 25
    project, user = lay_out(2, steps)
    weather = FaultInjector(house, chance, every=40)
    with ExitStack() as closing:
        hands = []
        for _ in range(2):
            context = logged_in_context(browser, house, user)
            closing.callback(context.close)
            weather.contexts.append(context)
            hands.append(BrowserRater(context, project.slug, weather))
        assignment = hands[0].ready()
        assert hands[1].ready() == assignment
        for part in range(RATINGS // steps):
            rate_all_steps(hands[part % 2], assignment, steps, chance)
        weather.clear_up()
        for hand in hands:
            hand.wait_until_saved()
    assert (weather.kills, weather.cuts) > (0, 0)
    assert told_by_client() == sorted(hand.pressed for hand in hands)
    assert stands() == winners(assignment)


def rate_all_steps(hand: BrowserRater, assignment: int, steps: int, chance: random.Random) -> None:
    hand.page.locator("#step-0 .step__no").click()
    for step in range(steps):
        hand.rate(assignment, step, chance.choice([-1, 0, 1]))


def told_by_client() -> list[list[tuple[int, int, int | None]]]:
    """What each client said, in its own order."""
    said = defaultdict(list)
    for write in RatingEdit.objects.order_by("sequence"):
        said[write.client].append((write.assignment_id, write.step, write.rating))
    return sorted(said.values())


def winners(assignment: int) -> dict[tuple[int, int], int | None]:
    """The rule once more, from the history alone: of a client the higher sequence; of two clients the write that saw
    the higher version, otherwise the one that came later."""
    standing: dict[int, RatingEdit] = {}
    for write in RatingEdit.objects.filter(assignment=assignment).order_by("version", "sequence"):
        before = standing.get(write.step)
        is_own = before is not None and before.client == write.client
        if before is None or is_own or write.seen >= before.seen:
            standing[write.step] = write
    return {(assignment, step): write.rating for step, write in standing.items()}
