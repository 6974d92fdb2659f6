"""The pages of judges: add, copy, try, run, cancel, resume, and the cost cap."""

import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobs.models import Job
from machines.models import Judge, JudgeRun, JudgeRunState, MachineBudget
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, always, running_chat
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db

FIELDS = {
    "name": "critic",
    "family": "vllm",
    "address": "http://127.0.0.1:1/v1",
    "model": "m",
    "contract": "critic",
    "n_votes": "1",
    "temperature": "0",
    "top_p": "1",
    "max_tokens": "512",
    "timeout": "30",
    "n_concurrent": "2",
    "prompt_price": "0.5",
    "completion_price": "2",
}


def post(personas: LoggedInPersonas, name: str, data: dict[str, Any] | None = None, **arguments: Any) -> Any:
    address = reverse(f"dashboard:{name}", kwargs={"slug": personas.cast.project.slug, **arguments})
    return personas.client("lead").post(address, data or {})


def get(personas: LoggedInPersonas, name: str, **arguments: Any) -> Any:
    return personas.client("lead").get(
        reverse(f"dashboard:{name}", kwargs={"slug": personas.cast.project.slug, **arguments})
    )


@pytest.mark.fault
def test_lead_adds_a_judge(personas: LoggedInPersonas) -> None:
    assert post(personas, "add_judge", {**FIELDS, "key": "sk-secret"}).status_code == 302
    judge = Judge.objects.get()
    assert (judge.label, judge.prompt_price, judge.rater.kind) == ("critic 1", Decimal("0.5"), "machine")
    for page in (
        get(personas, "judges"),
        get(personas, "judge", judge=judge.pk),
        get(personas, "copy_judge", judge=judge.pk),
    ):
        assert page.status_code == 200
        assert "sk-secret" not in page.content.decode()
    assert 'data-judge="critic 1"' in get(personas, "judges").content.decode()


ROLLOUTS = {
    **{name: value for name, value in FIELDS.items() if name != "contract"},
    "name": "mc",
    "n_votes": "8",
    "temperature": "1",
    "checker": "number",
    "search": "binary",
    "threshold": "0",
    "separator": "line_break",
    "stop": "\r\nProblem:",
    "stops_early": "on",
}


@pytest.mark.fault
def test_lead_adds_monte_carlo_rollouts_and_copies_them(personas: LoggedInPersonas) -> None:
    assert post(personas, "add_rollouts", ROLLOUTS).status_code == 302
    judge = Judge.objects.get()
    assert (judge.kind, judge.n_votes, judge.rater.machine.split(":")[0]) == ("monte_carlo", 8, "Monte Carlo")
    options = judge.rollout_options
    assert (options.search, options.separator, options.stop, options.stops_early) == (
        "binary",
        "\n",
        "\nProblem:",
        True,
    )
    form = get(personas, "copy_judge", judge=judge.pk).context["rollout_form"]
    assert {name: form.initial[name] for name in ("search", "separator")} == {
        "search": "binary",
        "separator": "line_break",
    }
    assert 'data-kind="monte_carlo"' in get(personas, "judge", judge=judge.pk).content.decode()
    wrong = post(personas, "add_rollouts", {**ROLLOUTS, "checker": "regex", "pattern": "(a+)+"})
    assert (wrong.status_code, list(wrong.context["rollout_form"].errors)) == (422, ["pattern"])


def test_lead_lets_a_prm_label(personas: LoggedInPersonas) -> None:
    prm = judged_project.make_prm(personas.cast.project, 0.4)
    assert post(personas, "add_prm_rater", {"prm": prm.pk}).status_code == 302
    judge = Judge.objects.get()
    assert (judge.kind, judge.name, judge.threshold, judge.prm) == ("prm", f"prm-{prm.version}", 0.4, prm)
    assert get(personas, "copy_judge", judge=judge.pk).context["prm_form"].initial["threshold"] == 0.4
    page = get(personas, "judge", judge=judge.pk).content.decode()
    assert 'data-kind="prm"' in page
    assert 'id="try-judge"' not in page
    assert post(personas, "add_prm_rater", {"prm": prm.pk, "threshold": "1.5"}).status_code == 422


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("address", "http://10.0.0.1/v1"), ("address", "not an address"), ("name", ""), ("prompt", "Only {steps}.")),
        *(("n_votes", "5"), ("n_votes", "0"), ("temperature", "nan"), ("timeout", "99999"), ("key", "s\u00e9cret")),
    ],
)
def test_invalid_judge_keeps_what_was_typed(personas: LoggedInPersonas, field: str, value: str) -> None:
    page = post(personas, "add_judge", {**FIELDS, field: value})
    assert page.status_code == 422
    assert page.context["form"].errors
    assert page.context["form"]["model"].value() == "m"
    assert not Judge.objects.exists()


def test_copy_keeps_the_key_only_for_its_address(personas: LoggedInPersonas) -> None:
    original = judged_project.make_judge(personas.cast.project, key="sk-1")
    copied = {**FIELDS, "copy_of": str(original.pk)}
    assert post(personas, "add_judge", copied).status_code == 302
    assert post(personas, "add_judge", {**copied, "address": "http://127.0.0.1:2/v1"}).status_code == 302
    keys = list(Judge.objects.order_by("pk").values_list("key", flat=True))
    assert keys[0] is not None
    assert keys[1] == keys[0]
    assert keys[2] is None


@pytest.mark.fault
def test_edited_prompt_is_tried_before_it_runs(personas: LoggedInPersonas) -> None:
    judged_project.add_traces(personas.cast.project, 4)
    with running_chat(ChatServer(always("The first. \\boxed{0}"))) as address:
        edited = {**FIELDS, "address": address, "prompt": "{problem}\r\n{steps}"}
        assert post(personas, "add_judge", edited).status_code == 302
        judge = Judge.objects.get()
        assert "\r" not in judge.prompt
        assert post(personas, "run_judge", {"scope": "all"}, judge=judge.pk).status_code == 422
        assert post(personas, "try_judge", judge=judge.pk).status_code == 302
        trial = judged_project.run_to_end(JudgeRun.objects.get())
        page = get(personas, "judge", judge=judge.pk).content.decode()
        assert len(re.findall(r'data-state="parsed"', page)) == 3
        assert post(personas, "run_judge", {"scope": "all"}, judge=judge.pk).status_code == 302
        run = judged_project.run_to_end(JudgeRun.objects.exclude(pk=trial.pk).get())
    assert run.n_labeled == 4


def test_paused_run_shows_its_reason_and_resumes(personas: LoggedInPersonas) -> None:
    judged_project.add_traces(personas.cast.project, 1)
    run = judged_project.start_run(judged_project.make_judge(personas.cast.project))
    judged_project.pause_run(run)
    page = get(personas, "judge", judge=run.judge_id)
    assert 'data-pause="configuration"' in page.content.decode()
    assert post(personas, "resume_judge_run", run=run.pk).status_code == 302
    run.refresh_from_db()
    assert (run.state, run.pause, run.pause_line) == (JudgeRunState.OPEN, "", "")
    assert Job.objects.filter(subject=run.subject, state="queued").exists()
    assert post(personas, "resume_judge_run", run=run.pk).status_code == 422
    assert post(personas, "cancel_judge_run", run=run.pk).status_code == 302
    assert post(personas, "resume_judge_run", run=run.pk).status_code == 422


def test_answer_of_a_model_is_shown_as_text(personas: LoggedInPersonas) -> None:
    judged_project.add_traces(personas.cast.project, 1)
    with running_chat(ChatServer(always("<script>alert(1)</script> \\boxed{0}"))) as address:
        judge = judged_project.make_judge(personas.cast.project, address)
        judged_project.run_to_end(judged_project.start_run(judge))
    page = get(personas, "judge", judge=judge.pk).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_trace_with_only_machine_labels_is_not_labeled_yet(personas: LoggedInPersonas) -> None:
    judged_project.add_traces(personas.cast.project, 2)
    with running_chat(ChatServer(always("\\boxed{0}"))) as address:
        judge = judged_project.make_judge(personas.cast.project, address)
        judged_project.run_to_end(judged_project.start_run(judge, most_traces=1))
    address = reverse("dashboard:traces", kwargs={"slug": personas.cast.project.slug})
    assert len(personas.client("lead").get(address, {"state": "unread"}).context["traces"]) == 2


def test_cost_cap_is_saved(personas: LoggedInPersonas) -> None:
    assert post(personas, "set_machine_budget", {"most_tokens": "1000", "most_money": "2.5"}).status_code == 302
    budget = MachineBudget.objects.get()
    assert (budget.most_tokens, budget.most_money) == (1000, Decimal("2.5"))
    assert post(personas, "set_machine_budget", {"most_tokens": "-1"}).status_code == 422
    assert post(personas, "set_machine_budget").status_code == 302
    budget.refresh_from_db()
    assert (budget.most_tokens, budget.most_money) == (None, None)


def test_list_takes_the_same_queries_for_many_judges(personas: LoggedInPersonas) -> None:
    counts = []
    for n in (2, 8):
        for _ in range(n):
            judged_project.make_judge(personas.cast.project)
        with CaptureQueriesContext(connection) as queries:
            assert get(personas, "judges").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
