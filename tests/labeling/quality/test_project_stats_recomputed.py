"""The agreement page against a recomputation from the exported long table, on three kinds of projects."""

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from bench import public_crowds
from formats import native
from formats.records import TraceRecord
from labeling import assignments
from labeling.models import Project, ProjectStats, Rater, Trace
from labeling.models.trace import ImportedLabelKind
from labeling.quality import project_stats, resolve
from labeling.traces import load, scan
from people import members
from people.models import Role
from tests import factories
from tests.api import api_clients
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.formats import prm800k_lines as prm
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import agreement_by_hand, submitted_work
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db
DOMAINS = ["algebra", "geometry"]
STEPS = ["One.", "Two.", "Three.", "Four."]
# (accuracy at the error, accuracy elsewhere): from a careful rater to one who calls every step right.
HABITS = ((0.9, 0.95), (0.8, 0.9), (0.75, 0.95), (0.3, 0.97), (0.0, 1.0), (0.85, 0.8), (0.7, 0.9), (0.9, 0.7))


def rate(dice: random.Random, habit: tuple[float, float], error: int | None, n: int = 4) -> list[int]:
    """Return a rater's ratings, up to the first step that they call wrong."""
    said = []
    for step in range(n):
        is_seen = dice.random() < (habit[0] if step == error else 1 - habit[1])
        said.append(-1 if is_seen else dice.choice([1, 1, 1, 1, 0]))
        if is_seen:
            break
    return said


def label_here(project: Project, n: int, dice: random.Random) -> None:
    """Label each trace twice as planned, a third time if the two differ, and alternatives where an error was found."""
    crowd = submitted_work.make_raters(project, len(HABITS))
    for number in range(n):
        problem = factories.make_problem(project, f"What is {number // 2}?", domain=DOMAINS[number % 2])
        steps = [[text, f"{text} Or else."] for text in STEPS]
        trace, error = factories.make_trace(project, steps, problem=problem), dice.choice([None, 0, 1, 2, 3])
        chosen = dice.sample(range(len(HABITS)), 3)
        said = [rate(dice, HABITS[each], error) for each in chosen]
        for each, ratings in list(zip(chosen, said, strict=True))[: 2 if said[0] == said[1] else 3]:
            population = "opinion" if each == chosen[2] else "scheduled"
            submit(crowd[each], trace, ratings, alternative=dice.choice([1, 1, -1]), population=population)
    resolve.resolve_due_traces(now=factories.NOW)


def submit(rater: Rater, trace: Trace, ratings: Sequence[int], *, alternative: int, population: str) -> None:
    client = WorkPageClient(factories.make_assignment(rater, trace, population=population))
    client.rate(ratings)
    if ratings[-1] == -1:
        client.send(client.write(len(ratings) - 1, alternative, option=1))
    assignments.submit(**client.place, now=factories.NOW, by=rater.user)


def import_named_labels(project: Project, n: int, dice: random.Random) -> None:
    """Import native records like those of DuckAI's file: several named people per trace, some of whom rate only a
    part."""
    people = [f"Labeler {number} Smith" for number in range(len(HABITS))]
    records = []
    for number in range(n):
        error = dice.choice([None, 1, 2, 3])
        for each in dice.sample(range(len(HABITS)), dice.choice([1, 4, 5, 6])):
            said = rate(dice, HABITS[each], error)
            said = said[:1] if dice.random() < 0.1 else said
            about = {"problem": f"Imported {number}?", "domain": DOMAINS[number % 2], "steps": STEPS}
            records.append({**about, "labels": said, "labeler": people[each]})
    import_native(project, records, name="named.jsonl")


def import_judge(project: Project, n: int) -> None:
    """Add a judge's labels to the same traces. The judge calls everything wrong, so its labels would change every
    number."""
    records = [
        {"problem": f"Imported {number}?", "domain": DOMAINS[number % 2], "steps": STEPS, "labels": [-1]}
        for number in range(n)
    ]
    import_native(project, records, name="judge.jsonl", judge="critic v3")


def import_native(project: Project, records: Sequence[dict[str, Any]], *, name: str, judge: str = "") -> None:
    file = io.BytesIO("\n".join(map(json.dumps, records)).encode())
    read = [record for record in native.read(file) if isinstance(record, TraceRecord)]
    if judge:
        read = [scan.attribute_labels(each, labels=ImportedLabelKind.JUDGE, labels_by=judge) for each in read]
    load.load_records(project=project, source=factories.make_source(project, name), records=read, now=factories.NOW)


def import_prm800k(project: Project, n: int, dice: random.Random) -> None:
    """Import pregenerated traces with alternatives, several labelers, quality control and submissions that gave up."""
    lines = []
    for number in range(n):
        error = dice.choice([None, 0, 1, 2, 3])
        for each in dice.sample(range(4), dice.choice([1, 2, 3])):
            said = rate(dice, HABITS[each], error)
            steps = [prm.make_step(text, rating) for text, rating in zip(STEPS, said, strict=False)]
            reason = "found_error" if said[-1] == -1 else "solution"
            if said[-1] == -1:
                steps[-1]["chosen_completion"] = None
                more = {"text": "Or else.", "rating": dice.choice([1, 1, 0, -1]), "flagged": False}
                steps[-1]["completions"].append(more)
            elif dice.random() < 0.2:
                steps, reason = steps[:2], "give_up"
            lines.append(
                prm.make_line(
                    steps=steps,
                    problem=f"Published {number}?",
                    pre_generated_steps=STEPS,
                    labeler=f"00000000-0000-4000-9000-{each:012d}",
                    finish_reason=reason,
                    is_quality_control_question=dice.random() < 0.1,
                )
            )
    load_lines(project, *lines, chunk=100)


@pytest.fixture
def project(client: Client, tmp_path: Path, settings: Any) -> Project:
    settings.DATA_DIR = tmp_path
    project = factories.make_project(reserve_problem_share=0.0)
    lead = factories.make_user("lead")
    members.add_member(project=project, user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    return project


def read_page(client: Client, project: Project, part: str) -> dict[str, Any]:
    response = client.get(reverse("dashboard:agreement", args=[project.slug]), {"of": part})
    assert f'data-population="{part or "headline"}"' in response.content.decode()
    return {each.key: each for each in response.context["agreement"]["estimates"]}


def read_long_table(project: Project) -> list[dict[str, Any]]:
    snapshot = build_snapshot(project, "steps")
    return [json.loads(line) for line in read_file(snapshot, "data/steps/train.jsonl").splitlines()]


def assert_page_equals(page: dict[str, Any], by_hand: dict[str, Any], *, least: int) -> None:
    compared = [key for key in by_hand if key in page]
    assert len(compared) >= 4  # slices have fewer statistics
    for key in compared:
        assert page[key].value == pytest.approx(by_hand[key], abs=1e-9), key
    assert page["alpha_nominal"].n == by_hand["n"] >= least


@pytest.mark.fault
def test_labels_made_here_equal_the_recomputation(client: Client, project: Project) -> None:
    dice = random.Random(5)
    label_here(project, 60, dice)
    import_named_labels(project, 12, dice)
    project_stats.compute_project_stats(project_id=project.pk, now=factories.NOW)
    rows = read_long_table(project)
    by_hand = agreement_by_hand.compute(rows, agreement_by_hand.is_planned, first=2)
    assert_page_equals(read_page(client, project, ""), by_hand, least=100)
    assert_page_equals(read_page(client, project, "alternatives"), by_hand["alternatives"], least=5)
    # With the alternatives, alpha would be another number: they are rated where both raters found the error.
    assert by_hand["pooled"]["alpha_nominal"] != pytest.approx(by_hand["alpha_nominal"], abs=0.01)


@pytest.mark.fault
def test_named_labels_of_a_file_equal_the_recomputation(client: Client, project: Project) -> None:
    import_named_labels(project, 40, random.Random(2))
    import_judge(project, 40)
    resolve.resolve_due_traces(now=factories.NOW)
    project_stats.compute_project_stats(project_id=project.pk, now=factories.NOW)
    rows = read_long_table(project)
    by_hand = agreement_by_hand.compute(rows, agreement_by_hand.is_imported)
    page = read_page(client, project, "imported")
    assert_page_equals(page, by_hand, least=60)
    assert (
        client.get(reverse("dashboard:agreement", args=[project.slug])).context["agreement"]["part"].key == "imported"
    )
    stats = ProjectStats.objects.get(project=project).content
    assert_slices_equal(stats["imported"]["agreement"], rows)
    mix = stats["mix"]
    ratings = [each["rating"] for row in rows for each in row["ratings"] if agreement_by_hand.is_imported(each)]
    assert mix == {str(value): ratings.count(value) for value in (-1, 0, 1)}


@pytest.mark.fault
def test_chosen_labelers_of_a_file_equal_the_recomputation(client: Client, project: Project) -> None:
    import_named_labels(project, 30, random.Random(4))
    project_stats.compute_project_stats(project_id=project.pk, now=factories.NOW)
    rows = read_long_table(project)
    named = {rater.pk: str(rater.pseudonym) for rater in Rater.objects.filter(project=project, kind="imported")}
    (lead,) = (each.user for each in project.memberships.all())
    program = api_clients.make_client(lead)
    for choice, chosen in (("without", list(named)[:2]), ("only", list(named)[:4])):
        kept = {name for pk, name in named.items() if (pk in chosen) == (choice == "only")}
        by_hand = agreement_by_hand.compute([keep_raters(row, kept) for row in rows], agreement_by_hand.is_imported)
        query: dict[str, Any] = {"rater": chosen, "choice": choice}
        response = client.get(reverse("dashboard:agreement", args=[project.slug]), query)
        agreement = response.context["agreement"]
        assert agreement["part"].key == "imported"
        assert {key for key, _name in agreement["raters"]} == named.keys()
        assert_page_equals({each.key: each for each in agreement["estimates"]}, by_hand, least=30)
        found = program.get(
            reverse("api:agreement", args=[project.slug]), {choice: [named[pk] for pk in chosen]}
        ).json()
        assert found["n_traces"] == 0
        assert found["imported"]["n_raters"] == len(kept)
        assert found["imported"]["steps"]["alpha_nominal"]["value"] == pytest.approx(by_hand["alpha_nominal"])


def assert_slices_equal(stored: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Domains and pairs of raters."""
    assert [each["key"] for each in stored["domain"]] == DOMAINS
    for each in stored["domain"]:
        own = [row for row in rows if row["domain"] == each["key"]]
        by_hand = agreement_by_hand.compute(own, agreement_by_hand.is_imported)
        assert each["steps"]["alpha_nominal"]["value"] == pytest.approx(by_hand["alpha_nominal"])
        assert each["first_error"]["exact"]["value"] == pytest.approx(by_hand["exact"])
    assert len(stored["pair"]) == 28
    for each in stored["pair"]:
        pair = {str(rater.pseudonym) for rater in Rater.objects.filter(pk__in=each["raters"])}
        by_hand = agreement_by_hand.compute([keep_raters(row, pair) for row in rows], agreement_by_hand.is_imported)
        assert each["first_error"]["exact"]["value"] == pytest.approx(by_hand["exact"])


def keep_raters(row: dict[str, Any], pseudonyms: set[str]) -> dict[str, Any]:
    return {**row, "ratings": [each for each in row["ratings"] if each["rater"] in pseudonyms]}


@pytest.mark.fault
def test_prm800k_equals_the_recomputation(client: Client, project: Project) -> None:
    import_prm800k(project, 50, random.Random(3))
    project_stats.compute_project_stats(project_id=project.pk, now=factories.NOW)
    by_hand = agreement_by_hand.compute(read_long_table(project), agreement_by_hand.is_imported)
    assert_page_equals(read_page(client, project, "imported"), by_hand, least=50)
    assert_page_equals(read_page(client, project, "imported-alternatives"), by_hand["alternatives"], least=5)


@pytest.mark.fault
def test_real_votes_of_many_raters_equal_the_recomputation(client: Client, project: Project, shared_data: Path) -> None:
    """Pictures of birds as traces of one step, each with 39 raters."""
    votes, _truth = public_crowds.load_bluebirds(shared_data)
    records = [
        {"problem": f"Bird {task}", "steps": ["Blue."], "labels": [1 if label else -1], "labeler": f"worker {worker}"}
        for task, worker, label in zip(votes.tasks.tolist(), votes.workers.tolist(), votes.labels.tolist(), strict=True)
        if task < 15
    ]
    import_native(project, records, name="birds.jsonl")
    project_stats.compute_project_stats(project_id=project.pk, now=factories.NOW)
    by_hand = agreement_by_hand.compute(read_long_table(project), agreement_by_hand.is_imported)
    assert_page_equals(read_page(client, project, "imported"), by_hand, least=15)


def test_real_prm800k_has_the_label_mix_of_its_file(project: Project, shared_data: Path) -> None:
    lines = (shared_data / "prm800k" / "phase1_train.reconstructed.jsonl").read_bytes().splitlines()[:40]
    load_lines(project, *lines, chunk=100)
    project_stats.compute_project_stats(project_id=project.pk, now=factories.NOW)
    content = ProjectStats.objects.get(project=project).content
    ratings = [
        completion["rating"]
        for line in map(json.loads, lines)
        for step in line["label"]["steps"]
        for completion in step["completions"] or ()
    ]
    assert content["mix"] == {str(value): ratings.count(value) for value in (-1, 0, 1)}
    # No two labelers of this file rated the same trace.
    by_hand = agreement_by_hand.step_statistics([])
    assert (content["imported"]["agreement"] or {}).get("n_traces", 0) == by_hand["n"] == 0
