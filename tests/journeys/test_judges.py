"""A lead adds a judge with an edited prompt, tries it, runs it, and reads its answers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections
from playwright.sync_api import expect

from machines.models import JudgeRun
from tests.journeys.conftest import Visit, accessibility_violations
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, always, running_chat
from tests.people import personas

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def a_worker() -> Iterator[None]:
    """Run queued jobs as the platform's own worker does."""
    is_over = threading.Event()

    def work() -> None:
        try:
            while not is_over.wait(0.2):
                for run in JudgeRun.objects.filter(state="open"):
                    judged_project.run_to_end(run)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_lead_adds_tries_and_runs_a_judge(visit: Visit) -> None:
    cast = personas.make_personas()
    judged_project.add_traces(cast.project, 5)
    page = visit(cast.lead)
    with running_chat(ChatServer(always("The second step is wrong. \\boxed{1}"))) as address, a_worker():
        page.goto(f"/projects/{cast.project.slug}/judges/")
        assert accessibility_violations(page) == []
        form = page.locator("#add").locator("xpath=ancestor-or-self::section")
        form.locator("[name=name]").fill("critic")
        form.locator("[name=address]").fill(address)
        form.locator("[name=model]").fill("scripted")
        form.locator("[name=prompt]").fill("{problem}\n{steps}\nWhich step is wrong?")
        form.locator("button[type=submit]").last.press("Enter")
        expect(page.locator("#identity")).to_be_visible()
        expect(page.locator("#run-judge")).to_have_count(0)
        assert accessibility_violations(page) == []
        page.locator("#try-judge").press("Enter")
        expect(page.locator("tr[data-state=done]")).to_have_count(1)
        page.reload()
        expect(page.locator("details[data-state=parsed]")).to_have_count(3)
        page.locator("#run-judge").press("Enter")
        expect(page.locator("tr[data-state=done]")).to_have_count(2)
    assert accessibility_violations(page) == []
    assert list(JudgeRun.objects.order_by("pk").values_list("is_trial", "n_labeled")) == [(True, 3), (False, 5)]
