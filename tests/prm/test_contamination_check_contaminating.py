"""A training set is held against all that judges: reserves, gold, canaries, lists of benchmarks, of every project."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from exports.models import Snapshot
from formats.normalization import digest_normalized
from labeling import benchmarks
from labeling.models import Project, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from people import members
from people.models import Role
from prm import contamination_check, generations, registry, score_encoding
from prm.models import PRM, Generation
from prm.registry import PRMIdentity
from tests import factories
from tests.prm import contamination_audit, generation_project

pytestmark = pytest.mark.django_db
WORDS = (
    "Ann has seven red marbles in a bag and gives three of them to her brother who then buys twelve more marbles from"
    " the shop around the corner"
)
ASKED = WORDS + ". How many has he?"
RETOLD = "Long ago. " + WORDS + " so tell me what is left."


def put(project: Project, text: str, *, is_reserve: bool = False) -> int:
    problem = factories.make_problem(project, text, is_reserve=is_reserve)
    problem.normal_digest = digest_normalized(text)
    problem.save()
    return factories.make_trace(project, problem=problem).pk


def put_on_list(project: Project, name: str, *texts: str, now: dt.datetime = factories.NOW) -> None:
    source = factories.make_source(project, name)
    benchmarks.register_problems(source=source, normal_digests=[digest_normalized(text) for text in texts], now=now)


def look(project: Project, trace: int) -> dict[str, tuple[int, int, int, int]]:
    """Of each kind or list: problems, of these without a text, equal ones, overlapping ones."""
    told = contamination_audit.run_audit(PRM(project=project, trained=score_encoding.encode_ids([trace])))
    assert (told["is_stated"], told["n_problems"]) == (True, 1)
    counts = ("n", "n_by_digest", "n_equal", "n_overlapping")
    return {each["name"] or each["kind"]: tuple(each[name] for name in counts) for each in told["judges"]}


def test_every_kind_of_what_judges_is_found_by_text_and_by_runs_of_words() -> None:
    project, other = factories.make_project(), factories.make_project()
    learnt = put(project, ASKED)
    put(project, RETOLD, is_reserve=True)
    put(other, ASKED.upper() + "!!", is_reserve=True)
    for where, use in ((project, GoldUse.HIDDEN), (other, GoldUse.SCREENING), (other, GoldUse.CANARY)):
        trace = Trace.objects.get(pk=put(where, f"{RETOLD} {use}"))
        make_gold(trace=trace, use=use, accepted_first_errors=[None], by=None, now=factories.NOW)
    found = look(project, learnt)
    assert found["reserve"] == (1, 0, 0, 1)
    assert found["other_reserve"] == (1, 0, 1, 0)
    assert found["gold"] == found["other_gold"] == found["canary"] == (1, 0, 0, 1)
    assert look(project, put(project, "What is 1 + 1?"))["reserve"] == (1, 0, 0, 0)


@pytest.fixture
def _public_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    listed = [digest_normalized(text)[:32] for text in (ASKED, RETOLD, "Nobody has this text.")]
    facts = tmp_path / "lists.json"
    facts.write_text(json.dumps({"lists": {"PUBLIC": listed}}))
    monkeypatch.setattr(benchmarks, "_FACTS", facts)
    benchmarks.load_shipped_lists.cache_clear()
    yield
    benchmarks.load_shipped_lists.cache_clear()


@pytest.mark.usefixtures("_public_list")
def test_lists_are_compared_by_runs_where_a_text_is_there_and_the_others_are_counted() -> None:
    """A list that ships has digests alone. Whatever project has one of its texts, its runs can be compared too."""
    project, other = factories.make_project(), factories.make_project()
    learnt = put(project, ASKED)
    put_on_list(other, "ours", RETOLD, "Neither has anybody this.")
    assert look(project, learnt)["PUBLIC"] == (3, 2, 1, 0)
    assert look(project, learnt)["ours"] == (2, 2, 0, 0)
    put(other, RETOLD)
    put(project, RETOLD)  # the same text counts once
    assert look(project, learnt)["PUBLIC"] == (3, 1, 1, 1)
    assert look(project, learnt)["ours"] == (2, 1, 0, 1)
    put_on_list(other, "PUBLIC", RETOLD, "A fourth problem on the list of that name.")
    assert look(project, learnt)["PUBLIC"] == (4, 2, 1, 1)


def test_generation_trained_on_a_benchmark_passes_and_says_so(client: Client) -> None:
    project = generation_project.make_project(labelled=60, unread=5)
    learnt = project.problems.filter(is_reserve=False, traces__assignments__isnull=False).order_by("pk")
    put_on_list(project, "OUR TEST", *{problem.text for problem in learnt[:3]})
    generation = generation_project.run_generation(project)
    assert (generation.has_passed, generation.gate["alarms"]) == (True, ["contamination"])
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    client.force_login(user)
    assert "trained on 3 problems of OUR TEST" in page(client, "generations", project)
    report = page(client, "prm", project, version=1)
    assert "Alarms: trained on problems that judge." in report
    assert "Same text alone looked for" in report


def test_careless_training_set_holds_the_gate(tmp_path: Path) -> None:
    """It was trained on all there is, the reserve with it."""
    project = generation_project.make_project(labelled=60, unread=5)
    call_command("build_snapshot", "--project", project.slug, "--out", str(tmp_path / "made"), "--name", "all")
    told = ("--project", project.slug, "--backend", "pushed", "--model", "m")
    call_command("register_prm", *told, "--snapshot", "all")
    generations.start_generation(project=project, by=None, now=factories.NOW, candidate=PRM.objects.get())
    generation_project.run_jobs()
    generation = Generation.objects.get(project=project)
    assert (generation.has_passed, generation.gate["why"]) == (False, "an alarm rings")
    assert "contamination" in generation.gate["alarms"]
    assert registry.current_prm(project.pk) is None


def test_prm_from_elsewhere_says_that_its_training_set_is_not_stated(client: Client) -> None:
    project = generation_project.make_project(labelled=40, unread=5)
    prm = registry.register_prm(
        project=project, identity=PRMIdentity("pushed", "of a cluster"), by=None, now=factories.NOW
    )
    assert contamination_audit.run_audit(prm) == {"is_stated": False, "n_problems": None, "judges": []}
    generations.start_generation(project=project, by=None, now=factories.NOW, candidate=prm)
    generation_project.run_jobs()
    generation = Generation.objects.get(project=project)
    assert generation.gate["alarms"] == []
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ENGINEER, now=factories.NOW)
    client.force_login(user)
    assert "what it was trained on is not stated" in page(client, "generations", project)
    assert "Not stated: it was registered without a training snapshot" in page(client, "prm", project, version=1)


def test_prm_from_elsewhere_may_name_the_snapshot_it_was_trained_on(client: Client, tmp_path: Path) -> None:
    project = generation_project.make_project(labelled=20, unread=0)
    call_command("build_snapshot", "--project", project.slug, "--out", str(tmp_path / "made"), "--name", "first")
    told = ("--project", project.slug, "--backend", "pushed", "--model", "m")
    call_command("register_prm", *told, "--snapshot", "first")
    with pytest.raises(CommandError, match="no snapshot second"):
        call_command("register_prm", *told, "--snapshot", "second")
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
    found = contamination_audit.run_audit(prm)
    assert found["is_stated"]
    assert found["judges"][0]["n_equal"] == project.problems.filter(is_reserve=True).count() > 0


def test_signs_of_life_come_between_hundreds_of_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contamination_check, "_CHUNK", 2)
    project = factories.make_project()
    learnt = put(project, ASKED)
    for n in range(6):
        put(project, f"Reserve {n}?", is_reserve=True)
    assert (
        len(
            list(
                contamination_check.audit_training_set(
                    PRM(project=project, trained=score_encoding.encode_ids([learnt]))
                )
            )
        )
        >= 4
    )


def page(client: Client, name: str, project: Project, **more: object) -> str:
    return client.get(reverse(f"dashboard:{name}", kwargs={"slug": project.slug, **more})).content.decode()
