"""Every command of the engineers' guide is run, in its order."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from labeling.models import Project, TraceDraw
from people import members
from people.models import Role
from prm import registry
from prm.models import PRM, Generation, PRMUsage, Score
from prm.models.generation import Stage
from tests import factories
from tests.api import api_clients
from tests.conventions.rule import ROOT
from tests.prm import generation_project
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db
GUIDE = (ROOT / "docs" / "guides" / "engineer.md").read_text()


def list_commands(program: str) -> Iterator[list[str]]:
    """Yield the arguments of the guide's lines that call a program."""
    for block in re.findall(r"^```sh\n(.+?)^```", GUIDE, re.M | re.S):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if " ".join(words).startswith(program):
                yield words[len(program.split()) :]


def write_files(folder: Path) -> None:
    rows = [generation_project.make_record(n, is_labeled=True) for n in range(220)]
    traces = [{"problem": each.problem.text, "steps": [step.options[0].text for step in each.steps]} for each in rows]
    errors = [
        next((turn.position for turn in each.submissions[0].turns if turn.shown and turn.shown[0].rating == -1), -1)
        for each in rows
    ]
    lines = [json.dumps({**row, "label": error}) for row, error in zip(traces, errors, strict=True)]
    (folder / "labelled.jsonl").write_text("\n".join(lines[:160]))
    (folder / "traces.jsonl").write_text("\n".join(json.dumps(row) for row in traces[160:]))
    (folder / "secret.txt").write_text("s3cret")
    for name, part in (("math.json", lines[:80]), ("gsm8k.json", lines[80:160])):
        (folder / name).write_text("\n".join(part))


def send(program: Client, words: list[str], body: Path) -> int:
    """Send the request that curl would send, and return its status."""
    address = words[0].replace("$STEPMARK", "")
    data = dict(zip(words[1::2], words[2::2], strict=True))
    kind = next(word.partition(": ")[2] for word in words if word.startswith("Content-Type"))
    content = body.read_text() if "--data-binary" in data else data["--data"]
    return program.post(address, content, content_type=kind).status_code


def test_every_command_of_the_guide_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = list(list_commands("python manage.py"))
    assert len(commands) >= 11
    with (
        scorer_servers.running_scorer(scorer_servers.FakeVllmServer()) as gpu,
        scorer_servers.running_reference_scorer("s3cret") as reference,
    ):
        addresses = {"http://gpu:8000": gpu, "http://127.0.0.1:9000/": reference}
        for name, *arguments in commands:
            call_command(name, *(addresses.get(each, each) for each in arguments))
        project = Project.objects.get(slug="sums")
        current = registry.current_prm(project.pk)
        assert current is not None
        assert TraceDraw.objects.filter(project=project, batch=1).count() == 20
        assert set(TraceDraw.objects.filter(project=project, batch=2).values_list("prm", flat=True)) == {current.label}
        assert PRM.objects.filter(project=project).count() == 4
        call_the_api(project, tmp_path)


def call_the_api(project: Project, folder: Path) -> None:
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    trace = project.traces.order_by("pk")[0]
    lines = folder / "scores.ndjson"
    lines.write_text(json.dumps({"trace": trace.pk, "scores": [0.5] * trace.n_steps}))
    answers = [send(api_clients.make_client(user), words, lines) for words in list_commands("curl")]
    assert answers == [200, 200, 200]
    assert Score.objects.filter(prm__version=4, trace=trace).exists()
    assert PRMUsage.objects.count() == 2


def test_impossible_generation_is_refused() -> None:
    with pytest.raises(CommandError, match="nowhere"):
        call_command("run_generation", "--project", "nowhere")
    project = generation_project.make_project(labelled=0, unread=5)
    with pytest.raises(CommandError, match="7"):
        call_command("run_generation", "--project", project.slug, "--prm", "7")
    assert not Generation.objects.exists()
    with pytest.raises(CommandError):
        call_command("run_generation", "--project", project.slug)
    assert Generation.objects.get().stage == Stage.STOPPED


def test_registration_without_a_secret_is_refused() -> None:
    project = factories.make_project()
    options = ("--backend", "http", "--model", "m", "--address", "http://127.0.0.1:1/")
    with pytest.raises(CommandError) as refused:
        call_command("register_prm", "--project", project.slug, *options)
    assert isinstance(refused.value.__cause__, registry.NotRegistrable)
    assert not PRM.objects.exists()
