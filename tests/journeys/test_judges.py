"""A lead adds a judge with an edited prompt, tries it, runs it and reads its answers; then adds rollouts, and reads the
progress of steps and what both machines agree on."""

from typing import Any

import pytest
from playwright.sync_api import expect

from labeling.models import Trace
from machines.models import Judge, JudgeRun
from tests.journeys.background_worker import running_worker
from tests.journeys.conftest import Visit, accessibility_violations
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, Scripted, always, running_chat
from tests.people import personas

pytestmark = pytest.mark.django_db(transaction=True)


def run_judges() -> None:
    for run in JudgeRun.objects.filter(state="open"):
        judged_project.run_to_end(run)


def test_lead_adds_tries_and_runs_a_judge(visit: Visit) -> None:
    cast = personas.make_personas()
    judged_project.add_traces(cast.project, 5)
    page = visit(cast.lead)
    with (
        running_chat(ChatServer(always("The second step is wrong. \\boxed{1}"))) as address,
        running_worker(run_judges),
    ):
        page.goto(f"/projects/{cast.project.slug}/judges/")
        assert accessibility_violations(page) == []
        form = page.locator("#add")
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


def answer(request: dict[str, Any], attempt: int) -> Scripted:
    """Judge a trace, or finish a solution."""
    if "messages" in request:
        return Scripted("The second step is wrong. \\boxed{1}")
    return Scripted(f"So \\boxed{{{11 if 'WRONG' in request['prompt'] else 10}}}.")


def test_lead_measures_progress_and_compares_machines(visit: Visit) -> None:
    cast = personas.make_personas()
    judged_project.add_sums(cast.project, 2, wrong_at=1, n_steps=3)
    page = visit(cast.lead)
    chat = ChatServer(answer)
    with running_chat(chat) as address, running_worker(run_judges):
        judge = judged_project.make_judge(cast.project, address)
        judged_project.start_run(judge)
        page.goto(f"/projects/{cast.project.slug}/judges/")
        form = page.locator("#add-rollouts")
        form.locator("summary").click()
        form.locator("[name=name]").fill("prover")
        form.locator("[name=address]").fill(address)
        form.locator("[name=model]").fill("scripted")
        form.locator("[name=n_votes]").fill("2")
        form.locator("[name=measures_progress]").check()
        form.locator("button[type=submit]").last.press("Enter")
        expect(page.locator("dl[data-kind=monte_carlo]")).to_be_visible()
        page.locator("#run-judge").press("Enter")
        expect(page.locator("tr[data-state=done]")).to_have_count(1)
    assert accessibility_violations(page) == []
    page.goto(f"/projects/{cast.project.slug}/traces/{Trace.objects.latest('pk').pk}/")
    expect(page.locator("[data-prover='prover 1'] svg").first).to_be_visible()
    assert accessibility_violations(page) == []
    page.goto(f"/projects/{cast.project.slug}/judges/agreement")
    for name, rater in (("first", judge.rater), ("second", Judge.objects.get(name="prover").rater)):
        page.locator(f"[name={name}]").select_option(str(rater.pk))
    page.locator("#machines").locator("xpath=ancestor-or-self::section").locator("button[type=submit]").press("Enter")
    expect(page.locator("[data-traces='2'][data-kept='2']")).to_be_visible()
    assert accessibility_violations(page) == []
