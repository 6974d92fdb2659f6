"""The build_snapshot command."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse

from exports import snapshots
from exports.models import Snapshot
from exports.orders import InvalidOrder
from labeling.models import Project
from people import members
from people.models import Role
from tests import factories
from tests.exports.snapshot_builder import make_labeled_project

pytestmark = pytest.mark.django_db


def build(project: str, out: Path, *options: str) -> Snapshot:
    streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    call_command("build_snapshot", "--project", project, "--out", str(out), *options, **streams)
    return Snapshot.objects.latest("pk")


def import_file(file: Path, project: str, *options: str) -> None:
    call_command("import_traces", str(file), "--project", project, *options, stdout=io.StringIO(), stderr=io.StringIO())


@pytest.mark.fault
def test_snapshot_without_rows_warns(tmp_path: Path, client: Client) -> None:
    project, err = make_labeled_project(), io.StringIO()
    options = ("--project", project.slug, "--format", "trl")
    call_command("build_snapshot", *options, "--out", str(tmp_path / "full"), stdout=io.StringIO(), stderr=err)
    assert err.getvalue() == ""
    rare = ("--out", str(tmp_path / "empty"), "--domain", "none of them")
    call_command("build_snapshot", *options, *rare, stdout=io.StringIO(), stderr=err)
    assert err.getvalue()
    lead = factories.make_user()
    members.add_member(project=project, user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    full, empty = (
        client.get(reverse("dashboard:snapshot", args=[project.slug, made.name])).content.decode()
        for made in Snapshot.objects.order_by("pk")
    )
    assert ("data-empty" in full, "data-empty" in empty) == (False, True)


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.fault
def test_training_snapshot_drops_benchmark_problems_and_counts_them(shared_data: Path, tmp_path: Path) -> None:
    """All 150 problems are from GSM8K's test set, and 36 of them are in ProcessBench, which was imported. The second
    snapshot overrides the first list by name; problems of the imported benchmark remain left out."""
    import_file(shared_data / "processbench/gsm8k.json", "bench", "--purpose", "benchmark")
    Project.objects.create(slug="sums", name="Sums", created_at=factories.NOW, reserve_problem_share=0.0)
    import_file(shared_data / "gsm8k/example_model_solutions.jsonl", "sums")
    common = ("--format", "outcomes", "--purpose", "training")
    snapshot = build("sums", tmp_path / "all", *common)
    assert snapshot.manifest is not None
    assert snapshot.manifest.left_out == {"benchmark": 600}
    assert snapshot.plan["benchmarks"] == {"GSM8K test": 150, "ProcessBench gsm8k": 36, "gsm8k.json": 36}
    reason = "The model was never trained on it."
    snapshot = build("sums", tmp_path / "some", *common, "--take-in", "benchmark:GSM8K test", "--reason", reason)
    manifest = json.loads((tmp_path / "some/manifest.json").read_text())
    assert manifest["left_out"] == {"benchmark": 144}
    prompts = {row["prompt"] for row in read_lines(tmp_path / "some/data/outcomes/train.jsonl")}
    judged = {row["problem"] for row in json.loads((shared_data / "processbench/gsm8k.json").read_text())}
    assert len(prompts) == 150 - 36
    assert not prompts & judged
    card = (tmp_path / "some/README.md").read_text()
    assert "- gsm8k.json: 36" in card
    assert "benchmark:GSM8K test" in card
    assert reason in card


@pytest.mark.fault
@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_processbench_file_is_exported_unchanged(shared_data: Path, tmp_path: Path, name: str) -> None:
    source = shared_data / f"processbench/{name}.json"
    import_file(source, "bench")
    build("bench", tmp_path, "--format", "processbench")
    assert read_lines(tmp_path / "data/processbench/train.jsonl") == json.loads(source.read_text())


def test_again_rewrites_the_same_files(tmp_path: Path) -> None:
    project = make_labeled_project(3)
    build(project.slug, tmp_path / "one", "--name", "first", "--format", "trl", "--format", "steps")
    build(project.slug, tmp_path / "two", "--name", "first", "--again")
    for path in (tmp_path / "one").rglob("*.json*"):
        assert (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("options", "code"),
    [(["--take-in", "gold"], "archive"), (["--purpose", "training", "--take-in", "gold"], "reason")],
)
def test_invalid_order_is_refused(options: list[str], code: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        build(make_labeled_project(1).slug, tmp_path, *options)
    assert isinstance(refused.value.__cause__, InvalidOrder)
    assert refused.value.__cause__.code == code


def test_unknown_project_and_snapshot_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nowhere"):
        build("nowhere", tmp_path)
    with pytest.raises(CommandError, match="--name"):
        build(make_labeled_project(1).slug, tmp_path, "--name", "nothing", "--again")


@pytest.mark.django_db(transaction=True)
@pytest.mark.fault
def test_several_workers_write_the_same_files_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_labeled_project()
    monkeypatch.setattr(snapshots, "SHARD", 2)
    one = build(project.slug, tmp_path / "alone", "--workers", "1")
    two = build(project.slug, tmp_path / "together", "--workers", "2")
    assert one.shards.count() > 1
    assert two.figures == one.figures
    sums = [list(each.files.exclude(format="").values_list("name", "sha256").order_by("name")) for each in (one, two)]
    assert sums[0] == sums[1] != []
