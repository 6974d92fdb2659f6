"""Evaluated problems (held-out sets, gold, canaries, lists) are left out of training and found by audits."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from dashboard.views import prms
from exports.models import Snapshot
from formats.near_duplicates import digest_normalized
from jobs.runner import JobProgress
from labeling import benchmarks
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Project, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from people import members
from people.models import Role
from prm import contamination_check, generations, labeled_traces, registry
from prm.evaluation.gate import GateReason, Verdict
from prm.models import PRM, Generation
from prm.models.prm import encode_ids
from prm.registry import PRMIdentity
from tests import factories
from tests.prm import generation_project

pytestmark = pytest.mark.django_db
WORDS = (
    "Ann has seven red marbles in a bag and gives three of them to her brother who then buys twelve more marbles from"
    " the shop around the corner"
)
ASKED = WORDS + ". How many has he?"
RETOLD = "Long ago. " + WORDS + " so tell me what is left."


def add_problem(project: Project, text: str, *, is_reserve: bool = False) -> int:
    problem = factories.make_problem(project, text, is_reserve=is_reserve)
    problem.normal_digest = digest_normalized(text)
    problem.save()
    return factories.make_trace(project, problem=problem).pk


def add_to_list(project: Project, name: str, *texts: str, now: dt.datetime = factories.NOW) -> None:
    source = factories.make_source(project, name)
    benchmarks.register_problems(source=source, normal_digests=[digest_normalized(text) for text in texts], now=now)


def run_audit(prm: PRM) -> dict[str, Any]:
    audit = contamination_check.audit_training_set(prm, JobProgress(0))
    while True:
        try:
            next(audit)
        except StopIteration as end:
            return dict(end.value)


def count_matches(project: Project, *traces: int) -> dict[str, tuple[int, int, int, int]]:
    """Return per kind or list: problems, those without a text, equal ones, overlapping ones."""
    audit = run_audit(PRM(project=project, trained=encode_ids(traces)))
    assert audit["is_stated"]
    counts = ("n", "n_by_digest", "n_equal", "n_overlapping")
    return {each["name"] or each["kind"]: tuple(each[name] for name in counts) for each in audit["judges"]}


def test_training_excludes_held_out_problems_and_those_similar_to_gold() -> None:
    project = generation_project.make_project(labeled=40, unread=0)
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="t", now=factories.NOW, by=None
    )
    settled = labeled_traces.load_trace_labels(frozen)
    before = contamination_check.exclude_judging_problems(project, settled)
    assert settled.is_reserve.any()
    assert not before.is_reserve.any()
    trace = project.traces.get(pk=before.traces[0])
    similar = factories.make_problem(project, trace.problem.text.upper() + " !")
    gold = factories.make_trace(project, problem=similar)
    make_gold(trace=gold, use=GoldUse.HIDDEN, accepted_first_errors=[None], by=None, now=factories.NOW)
    after = contamination_check.exclude_judging_problems(project, settled)
    assert set(before.traces) - set(after.traces) == {trace.pk}
    everything = count_matches(project, *settled.traces)
    assert sum(everything["reserve"][2:]) > 0
    assert sum(everything["gold"][2:]) == 1
    assert not any(sum(counts[2:]) for counts in count_matches(project, *after.traces).values())


def test_every_kind_of_evaluated_problem_is_found_by_text_and_by_runs() -> None:
    project, other = factories.make_project(), factories.make_project()
    trained = add_problem(project, ASKED)
    add_problem(project, RETOLD, is_reserve=True)
    add_problem(other, ASKED.upper() + "!!", is_reserve=True)
    for where, use in ((project, GoldUse.HIDDEN), (other, GoldUse.SCREENING), (other, GoldUse.CANARY)):
        trace = Trace.objects.get(pk=add_problem(where, f"{RETOLD} {use}"))
        make_gold(trace=trace, use=use, accepted_first_errors=[None], by=None, now=factories.NOW)
    matches = count_matches(project, trained)
    assert matches["reserve"] == (1, 0, 0, 1)
    assert matches["other_reserve"] == (1, 0, 1, 0)
    assert matches["gold"] == matches["other_gold"] == matches["canary"] == (1, 0, 0, 1)
    assert count_matches(project, add_problem(project, "What is 1 + 1?"))["reserve"] == (1, 0, 0, 0)


@pytest.fixture
def _public_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    listed = [digest_normalized(text)[:32] for text in (ASKED, RETOLD, "A problem without a text.")]
    facts = tmp_path / "lists.json"
    facts.write_text(json.dumps({"lists": {"PUBLIC": listed}}))
    monkeypatch.setattr(benchmarks, "_SHIPPED_LISTS", facts)
    benchmarks.load_shipped_lists.cache_clear()
    yield
    benchmarks.load_shipped_lists.cache_clear()


@pytest.mark.usefixtures("_public_list")
def test_lists_are_compared_by_runs_if_any_project_has_the_text() -> None:
    """A shipped list has only digests; the texts come from any project that has the problem."""
    project, other = factories.make_project(), factories.make_project()
    trained = add_problem(project, ASKED)
    add_to_list(other, "ours", RETOLD, "Another problem without a text.")
    assert count_matches(project, trained)["PUBLIC"] == (3, 2, 1, 0)
    assert count_matches(project, trained)["ours"] == (2, 2, 0, 0)
    add_problem(other, RETOLD)
    add_problem(project, RETOLD)  # the same text counts once
    assert count_matches(project, trained)["PUBLIC"] == (3, 1, 1, 1)
    assert count_matches(project, trained)["ours"] == (2, 1, 0, 1)
    add_to_list(other, "PUBLIC", RETOLD, "A fourth problem on the list of that name.")
    assert count_matches(project, trained)["PUBLIC"] == (4, 2, 1, 1)


@pytest.mark.fault
def test_generation_trained_on_a_benchmark_passes_with_an_alarm(client: Client) -> None:
    project = generation_project.make_project(labeled=60, unread=5)
    trained = project.problems.filter(is_reserve=False, traces__assignments__isnull=False).order_by("pk")
    add_to_list(project, "OUR TEST", *{problem.text for problem in trained[:3]})
    generation = generation_project.run_generation(project)
    assert (generation.verdict, generation.gate["alarms"]) == (Verdict.ACCEPTED, ["contamination"])
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    client.force_login(user)
    (alarm,) = (text for text in prms.list_gate_alarms(generation.gate) if "OUR TEST" in text)
    assert alarm in page(client, "generations", project)
    report = page(client, "prm", project, version=1)
    assert str(prms.ALARM_LABELS["contamination"]) in report
    assert "OUR TEST" in report


@pytest.mark.fault
def test_training_on_the_held_out_set_blocks_the_gate(tmp_path: Path) -> None:
    project = generation_project.make_project(labeled=60, unread=5)
    call_command("build_snapshot", "--project", project.slug, "--out", str(tmp_path / "made"), "--name", "all")
    options = ("--project", project.slug, "--backend", "pushed", "--model", "m")
    call_command("register_prm", *options, "--snapshot", "all")
    generations.start_generation(project=project, by=None, now=factories.NOW, candidate=PRM.objects.get())
    generation_project.run_jobs()
    generation = Generation.objects.get(project=project)
    assert (generation.verdict, generation.gate["why"]) == (Verdict.REJECTED, GateReason.ALARM)
    assert "contamination" in generation.gate["alarms"]
    assert registry.current_prm(project.pk) is None


def test_training_set_of_an_external_prm_is_not_stated(client: Client) -> None:
    project = generation_project.make_project(labeled=40, unread=5)
    prm = registry.register_prm(
        project=project, identity=PRMIdentity("pushed", "of a cluster"), by=None, now=factories.NOW
    )
    assert run_audit(prm) == {"is_stated": False, "n_problems": None, "judges": []}
    generations.start_generation(project=project, by=None, now=factories.NOW, candidate=prm)
    generation_project.run_jobs()
    generation = Generation.objects.get(project=project)
    assert generation.gate["alarms"] == []
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    client.force_login(user)
    (warning,) = prms.list_gate_alarms(generation.gate)
    assert warning in page(client, "generations", project)
    shown = client.get(reverse("dashboard:prm", kwargs={"slug": project.slug, "version": 1}))
    assert shown.context["contamination"]["is_stated"] is False


def test_external_prm_can_name_its_training_snapshot(client: Client, tmp_path: Path) -> None:
    project = generation_project.make_project(labeled=20, unread=0)
    call_command("build_snapshot", "--project", project.slug, "--out", str(tmp_path / "made"), "--name", "first")
    options = ("--project", project.slug, "--backend", "pushed", "--model", "m")
    call_command("register_prm", *options, "--snapshot", "first")
    with pytest.raises(CommandError):
        call_command("register_prm", *options, "--snapshot", "second")
    assert PRM.objects.count() == 1
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    client.force_login(user)
    form = {"backend": "pushed", "model": "m", "semantics": "hazard"}
    for trained_on in (Snapshot.objects.get().pk, ""):
        address = reverse("dashboard:register_prm", kwargs={"slug": project.slug})
        assert client.post(address, {**form, "trained_on": trained_on}).status_code == 302
    registered = PRM.objects.order_by("version").values_list("n_trained", flat=True)
    assert list(registered) == [20, 20, None]
    prm = PRM.objects.get(version=2)
    audit = run_audit(prm)
    assert audit["is_stated"]
    assert audit["judges"][0]["n_equal"] == project.problems.filter(is_reserve=True).count() > 0


def test_audit_reports_progress_between_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contamination_check, "_CHUNK", 2)
    project = factories.make_project()
    trained = add_problem(project, ASKED)
    for n in range(6):
        add_problem(project, f"Reserve {n}?", is_reserve=True)
    prm = PRM(project=project, trained=encode_ids([trained]))
    assert len(list(contamination_check.audit_training_set(prm, JobProgress(0)))) >= 4


def page(client: Client, name: str, project: Project, **more: object) -> str:
    return client.get(reverse(f"dashboard:{name}", kwargs={"slug": project.slug, **more})).content.decode()
