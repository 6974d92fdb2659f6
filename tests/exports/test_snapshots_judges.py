"""Snapshots name the machines whose labels they contain, and can keep what machines agree on."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from labeling.models import Exposure, Project, Rater
from machines import judges
from prm import scores
from tests import factories
from tests.factories import NOW
from tests.labeling import suggested_project
from tests.labeling.quality import submitted_work
from tests.machines import judged_project, machine_labels
from tests.machines.chat_servers import ChatServer, Scripted, always, running_chat

pytestmark = pytest.mark.django_db
CRITIC, MONTE_CARLO = "judge: critic", "Monte Carlo: mc"


@pytest.fixture
def project() -> Project:
    made = judged_project.make_project(2)
    with running_chat(ChatServer(always("\\boxed{1}"))) as address:
        judge = judged_project.make_judge(made, address, prompt_price=10, n_votes=2, temperature=1.0)
        judged_project.run_to_end(judged_project.start_run(judge))
    return made


def build(project: Project, folder: Path, *words: str) -> list[dict[str, Any]]:
    call_command("build_snapshot", "--project", project.slug, "--out", str(folder), *words)
    files = sorted(path for path in folder.rglob("*.jsonl") if ".weights" not in path.name)
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def read_manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads(next(folder.rglob("manifest.json")).read_text()))


@pytest.mark.parametrize("format", ["native", "steps", "prm800k", "processbench", "trl", "first_errors"])
def test_rows_say_who_spoke(project: Project, tmp_path: Path, format: str) -> None:
    rows = build(project, tmp_path / "out", "--format", format)
    found = [rating for row in rows for rating in row["ratings"]] if format == "steps" else rows
    assert found
    for row in found:
        assert row["rater_name"].startswith("judge: critic 1 (scripted, prompt ")
        machine = row["machine"]
        assert (machine["kind"], machine["name"], machine["version"], machine["model"]) == (
            *("judge", "critic", 1, "scripted"),
        )
        assert (machine["endpoint_family"], machine["votes"], machine["cost"]) == ("vllm", 2, 0.002)
        assert len(machine["prompt_digest"]) == 64
        assert row["is_blind"] is True


def test_manifest_and_card_describe_the_judge(project: Project, tmp_path: Path) -> None:
    build(project, tmp_path / "out", "--format", "steps")
    (judge,) = read_manifest(tmp_path / "out")["judges"]
    assert (judge["name"], judge["version"], judge["family"], judge["model"]) == ("critic", 1, "vllm", "scripted")
    assert (judge["kind"], judge["n_votes"], judge["n_traces"], judge["tokens"]) == ("judge", 2, 2, 480)
    card = next((tmp_path / "out").rglob("README.md")).read_text()
    assert judge["prompt_digest"][:12] in card


def test_rows_and_card_of_a_prover_and_a_prm(tmp_path: Path) -> None:
    project = factories.make_project()
    judged_project.add_sums(project, 1, wrong_at=2)
    with running_chat(ChatServer(lambda request, n: Scripted(_answer(request)))) as address:
        prover = judged_project.make_rollout_rater(project, address, {"measures_progress": True}, model="prover-7b")
        judged_project.run_to_end(judged_project.start_run(prover))
    prm = judged_project.make_prm(project)
    line = json.dumps({"trace": project.traces.get().pk, "scores": [0.9, 0.8, 0.1, 0.1]}).encode()
    scores.push_scores(prm=prm, lines=[line], by=None, now=factories.NOW)
    labeler = judges.add_prm_rater(prm=prm, by=None, now=factories.NOW)
    judged_project.run_to_end(judged_project.start_run(labeler))
    rows = build(project, tmp_path / "out", "--format", "steps")
    by_kind = {kind: [] for kind in ("monte_carlo", "prm")}  # type: dict[str, list[dict[str, Any]]]
    for row in rows:
        for rating in row["ratings"]:
            by_kind[rating["machine"]["kind"]].append(rating)
    assert [rating["progress"] for rating in by_kind["monte_carlo"]] == [0.0, 0.0, -1.0, 0.0]
    assert {rating["machine"]["model"] for rating in by_kind["monte_carlo"]} == {"prover-7b"}
    assert {(rating["is_blind"], rating["progress"]) for rating in by_kind["prm"]} == {(True, None)}
    assert {rating["is_blind"] for rating in by_kind["monte_carlo"]} == {False}
    described = {each["kind"]: each for each in read_manifest(tmp_path / "out")["judges"]}
    assert described["monte_carlo"]["rollouts"]["measures_progress"] is True
    assert described["prm"]["threshold"] == 0.5
    card = next((tmp_path / "out").rglob("README.md")).read_text()
    assert all(each["name"] in card for each in described.values())


def _answer(request: dict[str, Any]) -> str:
    return r"\boxed{11}" if "WRONG" in request["prompt"] else r"\boxed{10}"


@pytest.fixture
def compared() -> Project:
    """Four traces with labels of a person and of two machines, which agree on two of the traces."""
    project = factories.make_project(overlap=1)
    critic, monte_carlo = (factories.make_machine_rater(project, name) for name in (CRITIC, MONTE_CARLO))
    for first, second in ((1, 1), (None, None), (0, 2), (None, 1)):
        trace = factories.make_trace(project)
        machine_labels.label_by_machine(critic, {trace: first})
        machine_labels.label_by_machine(monte_carlo, {trace: second})
        machine_labels.settle(submitted_work.make_raters(trace.project, 2), trace, 1)
    lonely = factories.make_trace(project)
    machine_labels.label_by_machine(critic, {lonely: 1})
    return project


AGREEING = ("--agreeing-machine", CRITIC, "--agreeing-machine", MONTE_CARLO)


def test_snapshot_keeps_what_machines_agree_on(compared: Project, tmp_path: Path) -> None:
    rows = build(compared, tmp_path / "out", "--format", "first_errors", *AGREEING, "--rater-kind", "machine")
    first, second = compared.traces.order_by("pk")[:2]
    machine_rows = [row for row in rows if row["rater_kind"] == "machine"]
    assert [(row["trace"], row["first_error"]) for row in machine_rows] == [
        *[(first.pk, 1)] * 2,
        *[(second.pk, -1)] * 2,
    ]
    manifest = read_manifest(tmp_path / "out")
    assert manifest["left_out"] == {"machines": 5}
    assert manifest["order"]["filters"]["agreeing_machines"] == [CRITIC, MONTE_CARLO]


def test_machines_here_are_named_by_their_labels(project: Project, tmp_path: Path) -> None:
    other = factories.make_machine_rater(project, MONTE_CARLO)
    for trace in project.traces.all():
        machine_labels.label_by_machine(other, {trace: 1})
    rows = build(
        project,
        tmp_path / "out",
        *("--format", "first_errors", "--agreeing-machine", "critic 1", "--agreeing-machine", MONTE_CARLO),
    )
    assert [row["first_error"] for row in rows] == [1] * 4
    assert read_manifest(tmp_path / "out")["order"]["filters"]["agreeing_machines"][0].startswith("judge: critic 1 (")


def test_agreeing_machines_are_known_and_several(compared: Project, tmp_path: Path) -> None:
    rater = Rater.objects.get(machine=CRITIC)
    for names in (["x", CRITIC], [CRITIC], [CRITIC, str(rater.labeler)]):
        words = [word for name in names for word in ("--agreeing-machine", name)]
        with pytest.raises(CommandError):
            build(compared, tmp_path / "no", *words)


@pytest.mark.parametrize(("flag", "kinds"), [("--human", {"member"}), ("--blind", {"member"})])
def test_flags_mean_what_they_say(compared: Project, tmp_path: Path, flag: str, kinds: set[str]) -> None:
    assisted = compared.raters.filter(kind="member").earliest("pk").assignments.get()
    type(assisted).objects.filter(pk=assisted.pk).update(is_assisted=True)
    rows = build(compared, tmp_path / "out", "--format", "steps", flag)
    ratings = [rating for row in rows for rating in row["ratings"]]
    assert {rating["rater_kind"] for rating in ratings} == kinds
    assert {rating["is_blind"] for rating in ratings} == ({True, False} if flag == "--human" else {True})
    assert {rating["machine"] for rating in ratings} == {None}


@pytest.mark.fault
@pytest.mark.parametrize("name", ["steps", "trl", "prm800k", "native"])
def test_rows_say_when_a_rater_saw_the_labels_of_a_machine(compared: Project, tmp_path: Path, name: str) -> None:
    shown = compared.raters.get(machine=CRITIC).assignments.earliest("pk")
    member = compared.raters.filter(kind="member").earliest("pk").assignments.get()
    type(member).objects.filter(pk=member.pk).update(is_assisted=True)
    plan = suggested_project.start(compared, suggest=0.5)
    Exposure.objects.create(
        assignment=member, plan=plan, arm="suggest", probability=0.5, shown=shown, shown_revision=1, drawn_at=NOW
    )
    rows = build(compared, tmp_path / "out", "--format", name, "--human")
    if name == "steps":
        rows = [rating for row in rows for rating in row["ratings"]]
    exposed = [row for row in rows if row.get("exposure")]
    assert {(row["exposure"], row["is_blind"], row["rater_kind"]) for row in exposed} == {("suggest", False, "member")}
    assert 0 < len(exposed) < len(rows)
