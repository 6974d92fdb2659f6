"""The page of live labeling for leads: add a policy, try it, open it, and add problems."""

from typing import Any

import pytest

from labeling.models import Problem, Project
from live.models import LivePolicy, LiveSession
from tests.live import live_project
from tests.live.step_servers import StepServer, running_steps
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
FORM: dict[str, Any] = {
    "family": "vllm",
    "model": "scripted",
    "mode": "completions",
    "n_options": 3,
    "temperature": 1,
    "top_p": 1,
    "max_tokens": 64,
    "step_end": "\\n\\n",
    "timeout": 5,
    "n_prefetched": 1,
    "sessions_per_problem": 1,
    "most_steps": 9,
    "prompt_price": 0,
    "completion_price": 0,
}


@pytest.fixture
def project(personas: LoggedInPersonas) -> Project:
    Project.objects.filter(pk=personas.cast.project.pk).update(protocol="live", reserve_problem_share=0)
    return Project.objects.get(pk=personas.cast.project.pk)


def test_policy_is_tried_before_it_opens(personas: LoggedInPersonas, project: Project) -> None:
    lead, root = personas.client("lead"), f"/projects/{project.slug}/live/"
    problems = 'What is 1 + 1?\n\n{"problem": "And 2 + 2?", "answer": "4"}\n'
    assert lead.post(f"{root}problems", {"problems": problems}).status_code == 302
    assert list(Problem.objects.order_by("pk").values_list("reference_answer", flat=True)) == [None, "4"]
    lead.post(f"{root}problems", {"problems": problems})
    assert Problem.objects.count() == 2
    with running_steps(StepServer(key="k-1234")) as address:
        form = {**FORM, "address": address, "key": "k-1234"}
        assert lead.post(f"{root}add", form).status_code == 302
        policy = LivePolicy.objects.get()
        assert policy.step_end == "\n\n"
        lead.post(f"{root}{policy.pk}/open")
        assert not LivePolicy.objects.filter(opened_at__isnull=False).exists()
        response = lead.post(f"{root}{policy.pk}/try", {"problem": Problem.objects.latest("pk").pk}, follow=True)
    content = response.content.decode()
    assert (content.count('data-request="answered"'), content.count("data-ending=")) == (2, 6)
    assert "k-1234" not in content
    lead.post(f"{root}{policy.pk}/open")
    assert b'data-open="1"' in lead.get(root).content
    assert LiveSession.objects.get().rater is None
    lead.post(f"{root}{policy.pk}/close")
    assert LivePolicy.objects.get().closed_at is not None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0),
        ("template", "No place for {problem}"),
        ("address", "http://169.254.169.254/v1"),
        ("n_options", 99),
    ],
)
def test_unusable_settings_are_refused(personas: LoggedInPersonas, project: Project, field: str, value: object) -> None:
    form = {**FORM, "address": "http://127.0.0.1:1/v1", field: value}
    response = personas.client("lead").post(f"/projects/{project.slug}/live/add", form)
    assert (response.status_code, list(response.context["form"].errors)) == (422, [field])


def test_copy_keeps_the_sealed_key_for_the_same_address(personas: LoggedInPersonas, project: Project) -> None:
    policy = live_project.make_policy(project, key="k-1234")
    lead, root = personas.client("lead"), f"/projects/{project.slug}/live/"
    assert b"k-1234" not in lead.get(f"{root}{policy.pk}/copy").content
    for address in (policy.address, "http://127.0.0.1:2/v1"):
        lead.post(f"{root}add", {**FORM, "address": address, "copy_of": policy.pk})
    keys = LivePolicy.objects.order_by("version").values_list("key", flat=True)
    assert [key is not None for key in keys] == [True, True, False]


@pytest.mark.fault
def test_failed_trial_does_not_count(personas: LoggedInPersonas, project: Project) -> None:
    problem = Problem.objects.create(project=project, text="?", digest="d", normal_digest="n", is_reserve=False)
    server = StepServer(is_up=False)
    lead, root = personas.client("lead"), f"/projects/{project.slug}/live/"
    with running_steps(server) as address:
        lead.post(f"{root}add", {**FORM, "address": address})
        policy = LivePolicy.objects.get()
        response = lead.post(f"{root}{policy.pk}/try", {"problem": problem.pk}, follow=True)
    assert b'data-request="failed"' in response.content
    policy.refresh_from_db()
    assert policy.tried_at is None
