"""Snapshots name the machines whose labels they contain."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from labeling.models import Project
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, always, running_chat

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    made = judged_project.make_project(2)
    with running_chat(ChatServer(always("\\boxed{1}"))) as address:
        judged_project.run_to_end(judged_project.start_run(judged_project.make_judge(made, address)))
    return made


def build(project: Project, folder: Path, *words: str) -> list[dict[str, object]]:
    call_command("build_snapshot", "--project", project.slug, "--out", str(folder), *words)
    files = sorted(folder.rglob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("format", ["native", "steps", "prm800k", "processbench"])
def test_rows_say_who_spoke(project: Project, tmp_path: Path, format: str) -> None:
    rows = build(project, tmp_path / "out", "--format", format)
    assert rows
    text = json.dumps(rows)
    assert "machine" in text
    assert "judge: critic 1 (scripted, prompt " in text


def test_manifest_and_card_describe_the_judge(project: Project, tmp_path: Path) -> None:
    build(project, tmp_path / "out", "--format", "steps")
    content = json.loads(next((tmp_path / "out").rglob("manifest.json")).read_text())
    (judge,) = content["judges"]
    assert (judge["name"], judge["version"], judge["family"], judge["model"]) == ("critic", 1, "vllm", "scripted")
    assert (judge["n_votes"], judge["n_traces"], judge["tokens"]) == (1, 2, 240)
    card = next((tmp_path / "out").rglob("README.md")).read_text()
    assert judge["prompt_digest"][:12] in card
