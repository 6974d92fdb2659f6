"""Every exported row says who rated it, and no name of an imported labeler leaves without a choice."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from exports import snapshots
from exports.models import Snapshot
from formats import native
from formats.records import TraceRecord
from labeling.datasets.selection import ManifestFilters
from labeling.models import Project, Rater
from labeling.models.trace import ImportedLabelKind
from labeling.quality import resolve
from labeling.traces import load, scan
from people import members
from people.models import Role
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db
NAME, UUID = "Ann Smith", "2d45c8c4-b303-4c12-9fc7-12dcb4f1d028"
ROW_FORMATS = ("trl", "math_shepherd", "rlhflow", "processbench", "steps", "first_errors", "pairs", "prm800k")
STEPS = ["One.", {"text": "Two.", "alternatives": ["Or two."]}]


@pytest.fixture
def project() -> Project:
    """One trace, rated by a person with a name and by a judge."""
    project = factories.make_project("sums", reserve_problem_share=0.0)
    for name, labels in (("people.jsonl", "judgments"), ("judge.jsonl", "judge")):
        record = {"problem": "What is 1 + 1?", "steps": STEPS, "labels": [1, -1], "labeler": NAME, "ref": labels}
        (read,) = native.read(io.BytesIO(json.dumps(record).encode()))
        assert isinstance(read, TraceRecord)
        better = read.submissions[0].turns[1].shown
        assert better is not None
        better.append(type(better[0])("Or two.", 1))
        read = scan.attribute_labels(read, labels=ImportedLabelKind(labels), labels_by="critic v3")
        source = factories.make_source(project, name)
        load.load_records(project=project, source=source, records=[read], now=factories.NOW)
    return project


def read_rows(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in read_file(snapshot, f"data/{name}/train.jsonl").splitlines()]
    return [rating for row in rows for rating in row["ratings"]] if name == "steps" else rows


@pytest.mark.parametrize("name", ROW_FORMATS)
def test_rows_of_a_machine_name_it_in_every_format(name: str, project: Project) -> None:
    rows = read_rows(build_snapshot(project, name), name)
    machine = [row for row in rows if row.get("rater_kind") == "machine"]
    assert machine
    assert len(machine) == len(rows) / 2
    for row in machine:
        assert (row["rater_name"], row["label_source"]) == ("judge: critic v3", "judge.jsonl")
    for row in rows:
        if row not in machine:
            assert row.get("rater_kind") in ("imported", None)
            assert row.get("rater_name") is None
            assert row.get("label_source") in ("people.jsonl", None)


def test_consensus_rows_have_no_rater(project: Project) -> None:
    load_lines(project, prm.make_line(labeler=UUID), prm.make_line(labeler=UUID.replace("2d", "3d")))
    resolve.resolve_due_traces(now=factories.NOW)
    rows = read_rows(build_snapshot(project, "trl", filters=ManifestFilters(is_consensus=True)), "trl")
    assert rows
    assert {(row["rater"], row["rater_kind"], row["rater_name"]) for row in rows} == {(None, "consensus", None)}


@pytest.mark.parametrize("filters", [{"is_blind": True}, {"rater_kinds": ["member", "imported", "unknown"]}])
def test_blind_and_human_labels_have_no_machine(filters: dict[str, Any], project: Project) -> None:
    rows = read_rows(build_snapshot(project, "steps", filters=ManifestFilters(**filters)), "steps")
    assert {row["rater_kind"] for row in rows} == {"imported"}
    machines = build_snapshot(project, "steps", filters=ManifestFilters(is_blind=False))
    assert {row["rater_kind"] for row in read_rows(machines, "steps")} == {"machine"}


def test_share_of_an_alternative_is_that_of_people(project: Project) -> None:
    """The judge calls the alternative wrong, the person right."""
    judge = Rater.objects.get(kind="machine")
    judge.assignments.get().turns.get(step__position=1).judgments.filter(option__position=1).update(rating=-1)
    lines = read_file(build_snapshot(project, "steps"), "data/steps/train.jsonl").splitlines()
    (alternative,) = [row for row in map(json.loads, lines) if row["option"] == 1]
    assert [each["rating"] for each in alternative["ratings"]] == [1, -1]
    assert alternative["p_correct"] == 1.0


def read_everything(snapshot: Snapshot) -> bytes:
    return b"".join(path.read_bytes() for path in snapshots.snapshot_folder(snapshot).rglob("*") if path.is_file())


@pytest.mark.fault
def test_names_leave_by_choice_only(project: Project) -> None:
    line = prm.make_line(problem="Spaced?", labeler=NAME).replace(b'": ', b'":  ')  # only its bytes reproduce it
    load_lines(project, line, prm.make_line(problem="Known?", labeler=UUID))
    filters = ManifestFilters(labelers=[NAME, UUID])
    for formats in (ROW_FORMATS[:-1], ("prm800k",)):
        one, other = (build_snapshot(project, *formats, filters=filters) for _ in range(2))
        assert NAME.encode() not in read_everything(one)
        assert UUID.encode() in read_everything(one)
        pseudonym = str(Rater.objects.get(labeler=NAME).pseudonym).encode()
        assert pseudonym in read_everything(one)
        assert pseudonym in read_everything(other)
        assert snapshots.rewrite_files(one, Path(snapshots.snapshot_folder(one)) / "again") == []
        named = build_snapshot(project, *formats, filters=filters, has_labeler_names=True)
        assert NAME.encode() in read_everything(named)
        assert pseudonym not in read_everything(named)
        cards = [read_file(each, "README.md").decode() for each in (one, named)]
        assert [card.count("- Names of imported labelers: pseudonyms") for card in cards] == [1, 0]
    assert line in read_file(named, "data/prm800k/train.jsonl")


def test_page_api_and_command_offer_the_choice(project: Project, client: Client, tmp_path: Path) -> None:
    call_command(
        *("build_snapshot", "--project", "sums", "--out", str(tmp_path), "--format", "steps", "--name", "named"),
        *("--labeler-names", "--rater-kind", "imported"),
    )
    order = Snapshot.objects.get(name="named").order
    assert (order["has_labeler_names"], order["filters"]["rater_kinds"]) == (True, ["imported"])
    lead = factories.make_user("lead")
    members.add_member(project=project, user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    form = {
        "name": "page",
        "purpose": "archive",
        "formats": ["steps"],
        "ratings": "raters",
        "ending": "jsonl",
        "neutral": "positive",
        "contested": "in",
        "gold": "in",
        "min_raters": 0,
        "validation": 0,
        "test": 0,
        "has_labeler_names": "on",
        "rater_kinds": ["machine"],
    }
    assert client.post(reverse("dashboard:order_snapshot", args=["sums"]), form).status_code == 302
    order = Snapshot.objects.get(name="page").order
    assert (order["has_labeler_names"], order["filters"]["rater_kinds"]) == (True, ["machine"])
