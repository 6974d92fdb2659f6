"""The same from the command line."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from exports import snapshots
from exports.models import Snapshot
from labeling.models import Project
from tests import factories
from tests.exports.test_snapshots import labelled

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / "data"


def build(project: str, out: Path, *options: str) -> str:
    said = io.StringIO()
    call_command("build_snapshot", "--project", project, "--out", str(out), *options, stdout=said, stderr=io.StringIO())
    return said.getvalue()


def bring(file: Path, project: str, *options: str) -> None:
    call_command("import_traces", str(file), "--project", project, *options, stdout=io.StringIO(), stderr=io.StringIO())


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_shared_problems_are_dropped_and_named(shared_data: Path, tmp_path: Path) -> None:
    """150 problems of GSM8K's test set, 36 of which judge models in ProcessBench. The lead takes the first list in by
    name, and says why; the problems of the benchmark that was brought in stay out."""
    bring(shared_data / "processbench/gsm8k.json", "bench", "--purpose", "benchmark")
    Project.objects.create(slug="sums", name="Sums", created_at=factories.NOW, reserve_problem_share=0.0)
    bring(shared_data / "gsm8k/example_model_solutions.jsonl", "sums")
    common = ("--format", "outcomes", "--purpose", "training")
    said = build("sums", tmp_path / "all", *common)
    assert "left out: benchmark 600" in said, said
    assert "problems on the list of GSM8K test: 150" in said
    assert "problems on the list of gsm8k.json: 36" in said
    reason = "The model was never trained on it."
    said = build("sums", tmp_path / "some", *common, "--take-in", "benchmark:GSM8K test", "--reason", reason)
    assert "left out: benchmark 144" in said
    prompts = {row["prompt"] for row in lines(tmp_path / "some/data/outcomes/train.jsonl")}
    judged = {row["problem"] for row in json.loads((shared_data / "processbench/gsm8k.json").read_text())}
    assert len(prompts) == 150 - 36
    assert not prompts & judged
    card = (tmp_path / "some/README.md").read_text()
    assert "| on the list of a benchmark | 144 |" in card
    assert "- gsm8k.json: 36" in card
    assert f"**Taken in nevertheless:** benchmark:GSM8K test. Why: {reason}" in card
    manifest = json.loads((tmp_path / "some/manifest.json").read_text())
    assert manifest["left_out"] == {"benchmark": 144}


@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_processbench_comes_back(shared_data: Path, tmp_path: Path, name: str) -> None:
    source = shared_data / f"processbench/{name}.json"
    bring(source, "bench")
    build("bench", tmp_path, "--format", "processbench")
    assert lines(tmp_path / "data/processbench/train.jsonl") == json.loads(source.read_text())


def test_snapshot_is_written_again(tmp_path: Path) -> None:
    project = labelled(3)
    build(project.slug, tmp_path / "one", "--name", "first", "--format", "trl", "--format", "steps")
    build(project.slug, tmp_path / "two", "--name", "first", "--again")
    for path in (tmp_path / "one").rglob("*.json*"):
        assert (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--take-in", "gold"], "An archive takes everything in"),
        (["--purpose", "training", "--take-in", "gold"], "needs a reason"),
        (["--name", "nothing", "--again"], "no such snapshot"),
    ],
)
def test_command_refuses_what_cannot_be_made(options: list[str], said: str, tmp_path: Path) -> None:
    project = labelled(1)
    with pytest.raises(CommandError, match=said):
        build(project.slug, tmp_path, *options)
    with pytest.raises(CommandError, match="no project"):
        build("nowhere", tmp_path)


@pytest.mark.django_db(transaction=True)
def test_several_workers_write_what_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The card as well, for which one of them counts meanwhile."""
    project = labelled()
    monkeypatch.setattr(snapshots, "SHARD", 2)
    for name, workers in (("alone", "1"), ("together", "2")):
        build(project.slug, tmp_path / name, "--workers", workers)
    one, two = Snapshot.objects.filter(project=project).order_by("pk")
    assert one.shards.count() > 1
    assert two.figures == one.figures
    sums = [list(each.files.exclude(format="").values_list("name", "sha256").order_by("name")) for each in (one, two)]
    assert sums[0] == sums[1] != []
