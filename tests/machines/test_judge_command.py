"""The command `judge`: add, try, run, resume, list. The machines guide runs it as well."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from labeling.models import Project
from machines.models import Judge, JudgeRun, MachineBudget
from machines.prompts import BUILTIN_TEMPLATES
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, always, running_chat

pytestmark = pytest.mark.django_db


def call(*words: str, project: Project | None = None, **options: Any) -> str:
    out = StringIO()
    more = ["--project", project.slug] if project else []
    call_command("judge", *words, *more, stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def add(project: Project, address: str, *words: str) -> str:
    return call("add", "--name", "c", "--address", address, "--model", "m", *words, project=project)


def test_builtin_prompt_can_be_edited(tmp_path: Path) -> None:
    project = judged_project.make_project(1)
    text = call("prompt", "--contract", "step_labels")
    assert text.strip() == BUILTIN_TEMPLATES["step_labels"].text.strip()
    (tmp_path / "prompt.txt").write_text(text + "Be strict.")
    file = ("--contract", "step_labels", "--prompt-file", str(tmp_path / "prompt.txt"))
    assert add(project, "http://127.0.0.1:1/v1", *file) == "1\n"
    assert add(project, "http://127.0.0.1:1/v1", *file) == "2\n"
    assert set(Judge.objects.values_list("prompt_version", flat=True)) == {2}


def test_run_prints_its_result() -> None:
    project = judged_project.make_project(2)
    with running_chat(ChatServer(always("\\boxed{0}"))) as address:
        add(project, address)
        result = json.loads(call("run", "--name", "c", project=project))
    assert (result["state"], result["n_labeled"], result["prompt_tokens"]) == ("done", 2, 200)
    listed = json.loads(call("list", project=project))
    assert [(each["name"], len(each["runs"])) for each in listed] == [("c", 1)]


def test_paused_run_fails_the_command_and_resumes() -> None:
    project = judged_project.make_project(2)
    with running_chat(chat := ChatServer(always("", status=401))) as address:
        add(project, address)
        with pytest.raises(CommandError) as paused:
            call("run", "--name", "c", project=project)
        assert paused.value.returncode == 3
        chat.script = always("\\boxed{0}")
        assert json.loads(call("resume", "--name", "c", project=project))["state"] == "done"


def test_trial_prints_answers() -> None:
    project = judged_project.make_project(5)
    with running_chat(ChatServer(always("Hm. \\boxed{0}"))) as address:
        add(project, address)
        assert call("try", "--name", "c", project=project).count("Hm.") == 3


def test_rollouts_and_prm_are_added() -> None:
    project = judged_project.make_project(1)
    rollouts = ("--contract", "rollouts", "--votes", "4", "--temperature", "1", "--search", "binary", "--stops-early")
    add(project, "http://127.0.0.1:1/v1", *rollouts, "--separator", r"\n")
    prm = judged_project.make_prm(project)
    call("add", "--name", "p", "--contract", "prm", "--prm", str(prm.version), "--threshold", "0.3", project=project)
    monte_carlo, labeler = json.loads(call("list", project=project))
    assert (monte_carlo["kind"], monte_carlo["rollouts"]["search"]) == ("monte_carlo", "binary")
    assert (monte_carlo["rollouts"]["separator"], monte_carlo["rollouts"]["stops_early"]) == ("\n", True)
    assert (labeler["kind"], labeler["threshold"]) == ("prm", 0.3)


def test_cap_and_cancel() -> None:
    project = judged_project.make_project(1)
    call("cap", "--most-tokens", "5", project=project)
    assert MachineBudget.objects.get().most_tokens == 5
    judge = judged_project.make_judge(project)
    judged_project.start_run(judge)
    call("cancel", "--name", "critic", project=project)
    assert JudgeRun.objects.get().state == "cancelled"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--name", "nobody"),
        ("resume", "--name", "critic"),
        ("add", "--name", "c", "--model", "m", "--address", "ftp://x"),
        ("add", "--name", "c", "--model", "m", "--address", "http://127.0.0.1:1", "--votes", "3"),
        ("add", "--name", "c"),
        ("add", "--name", "c", "--contract", "prm"),
        ("add", "--name", "c", "--model", "m", "--address", "http://127.0.0.1:1", "--key-file", "/nowhere"),
    ],
)
def test_impossible_requests_are_refused(words: tuple[str, ...]) -> None:
    project = judged_project.make_project(1)
    judged_project.make_judge(project)
    with pytest.raises(CommandError):
        call(*words, project=project)
    assert Judge.objects.count() == 1
    assert not JudgeRun.objects.exists()
