"""Passports: their figures from labels of people, the recorded answers of judges, and how they expire."""

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from jobs import runner
from jobs.models import Job
from labeling.assignments.machine_submissions import MachineRating, MachineSubmission, save_machine_submissions
from labeling.models import Guideline, Option, Project, Rater, Step, Trace
from labeling.models.project import Protocol
from labeling.models.trace import StepKind
from labeling.quality import project_stats, resolve, settlements
from machines import passports, verdicts
from machines.models import Judge, JudgedTrace, JudgeRun, JudgeVote, MachinePassport
from machines.passport_models import PassportEnd
from machines.replies import parse_reply
from people import members
from people.models import Role
from tests import factories
from tests.labeling.quality import submitted_work
from tests.machines import judged_project, machine_labels
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db

ANSWERS = Path(__file__).parent / "agent_judges.jsonl"
LATER = factories.NOW + dt.timedelta(hours=1)


# The recorded answers of twenty judges


def read_block(text: str) -> dict[str, int] | None:
    """Read the labels of an answer as the benchmark does: the last JSON block."""
    blocks = re.findall(r"```json\s*(.*?)\s*```", text, re.DOTALL)
    try:
        return dict(json.loads(blocks[-1])["step_labels"])
    except (IndexError, ValueError):
        return None


def first_negative(labels: dict[str, int]) -> int | None:
    return min((int(index) for index, label in labels.items() if label == -1), default=None)


def compute_published(rows: list[dict[str, Any]], judge: str) -> tuple[float, float]:
    """Return StepAcc and FirstErrAcc."""
    same = steps = first = 0
    for row in rows:
        answer = read_block(row["judges"][judge])
        steps += len(row["step_labels"])
        same += sum((answer or {}).get(index) == label for index, label in row["step_labels"].items())
        first += answer is not None and first_negative(answer) == first_negative(row["step_labels"])
    return same / steps, first / len(rows)


def import_rows(rows: list[dict[str, Any]]) -> tuple[Project, dict[str, Trace]]:
    """Create the trajectories with the labels of one person."""
    project = factories.make_project(protocol=Protocol.EVERY_STEP, overlap=1)
    person, traces = factories.make_rater(project), {}
    for row in rows:
        trace = factories.make_trace(project, [message["content"] for message in row["messages"]])
        context = [place for place, message in enumerate(row["messages"]) if message["role"] != "assistant"]
        Step.objects.filter(trace=trace, position__in=context).update(is_rateable=False, kind=StepKind.OBSERVATION)
        ratings = [MachineRating(int(index), label) for index, label in row["step_labels"].items()]
        save_machine_submissions(rater=person, submitted=[MachineSubmission(trace.pk, ratings)], now=factories.NOW)
        traces[row["id"]] = trace
    settlements.mark_imported_due(trace_ids=[trace.pk for trace in traces.values()], now=factories.NOW)
    resolve.resolve_due_traces(now=factories.NOW)
    return project, traces


def replay_judge(project: Project, rows: list[dict[str, Any]], traces: dict[str, Trace], name: str) -> Judge:
    """Store the recorded answers of one judge as a run would."""
    judge = judged_project.make_judge(project, name=name, contract="agent_rubric")
    run = JudgeRun.objects.create(judge=judge, last_trace=10**9, asked_at=factories.NOW)
    for row in rows:
        trace = traces[row["id"]]
        rateable = sorted(int(index) for index in row["step_labels"])
        parsed = parse_reply(judge.contract, row["judges"][name], rateable, is_complete=True)
        verdict = verdicts.combine_votes(judge.contract, [parsed], rateable)
        submission = None
        if verdict is not None:
            ratings = [MachineRating(step.position, step.rating) for step in verdict.steps]
            submitted = [MachineSubmission(trace.pk, ratings)]
            submission = save_machine_submissions(rater=judge.rater, submitted=submitted, now=factories.NOW)[trace.pk]
        JudgedTrace.objects.create(
            judge=judge,
            run=run,
            trace=trace,
            submission=submission,
            n_votes=1,
            n_parsed=int(verdict is not None),
            first_error=verdict.first_error if verdict else None,
            first_errors=[list(item) for item in verdict.first_errors.items()] if verdict else [],
            prompt_tokens=100,
            completion_tokens=20,
            money=Decimal("0.002"),
            judged_at=factories.NOW,
        )
    return judge


@pytest.mark.fault
def test_passports_reproduce_the_figures_of_twenty_judges(personas: LoggedInPersonas) -> None:
    rows = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    project, traces = import_rows(rows)
    names = sorted(rows[0]["judges"])
    assert len(names) == 20
    for name in names:
        judge = replay_judge(project, rows, traces, name)
        content = passports.build_passport(judge.rater, epsilon=0.15)
        step_accuracy, first_error_accuracy = compute_published(rows, name)
        overall = content["overall"]
        assert round(overall["step_accuracy"]["value"], 3) == round(step_accuracy, 3)
        assert round(overall["accuracy"]["value"], 3) == round(first_error_accuracy, 3)
        unread = sum(read_block(row["judges"][name]) is None for row in rows)
        assert (content["n_judged"], content["n_unread"]) == (len(rows), unread)
        assert content["cost"] == {"tokens": 120.0, "money": pytest.approx(0.002)}
    # The page shows the same figures of the last judge to three decimals.
    passports.issue_passport(rater=judge.rater, content=content, by=None, now=factories.NOW)
    members.add_member(project=project, user=personas.cast.lead, role=Role.LEAD, now=factories.NOW)
    address = reverse("dashboard:machine", args=[project.slug, judge.rater_id])
    page = personas.client("lead").get(address).content.decode()
    shown = dict(re.findall(r'data-figure="(\w+)".*?<td class="r">([0-9.]+)</td>', page, re.DOTALL))
    assert shown["machine_step_accuracy"] == f"{step_accuracy:.3f}"
    assert shown["machine_accuracy"] == f"{first_error_accuracy:.3f}"


# Hand-counted figures


def label_project() -> tuple[Project, Rater, list[Trace]]:
    """Create eight settled traces, on which a machine finds the error twice, misses it once, and alarms once."""
    project = factories.make_project(overlap=2)
    people = submitted_work.make_raters(project, 2)
    machine = factories.make_machine_rater(project)
    traces = [factories.make_trace(project) for _ in range(8)]
    truth = [0, 1, 2, None, None, None, None, None]
    given = [0, 1, None, 1, None, None, None, None]
    machine_labels.label_by_machine(machine, dict(zip(traces, given, strict=True)))
    for trace, first_error in zip(traces, truth, strict=True):
        machine_labels.settle(people, trace, first_error)
    return project, machine, traces


@pytest.mark.fault
def test_passport_compares_the_machine_with_people_and_gold() -> None:
    project, machine, traces = label_project()
    gold = factories.make_trace(project)
    machine_labels.make_hidden_gold(gold, 1)
    machine_labels.label_by_machine(machine, {gold: 1})
    content = machine_labels.issue_passport(machine).content
    overall = content["overall"]
    assert (content["n_judged"], content["n_unread"], content["cost"]) == (9, 0, None)
    assert (overall["exact"]["value"], overall["pairs"]) == (6 / 8, 16)
    assert overall["accuracy"]["value"] == 6 / 8
    assert overall["missed"]["value"] == pytest.approx(1 / 3)
    # Correct steps that the machine reached: 0, 1, 2 (missed), 2 (alarm), 3, 3, 3, 3.
    assert overall["false_alarms"]["value"] == pytest.approx(1 / 17)
    assert [(row["first"], row["n"], row["hits"]) for row in content["missed"][:2]] == [(1, 2, 0), (3, 1, 1)]
    assert (content["gold"]["right"], content["gold"]["cases"]) == (1, 1)
    assert content["reliability"] is None
    assert content["test"]["reason"] is not None
    assert [row["stratum"]["says_error"] for row in content["strata"]] == [False, True]
    assert traces[0].pk  # the traces of the consensus are no gold
    assert sum(row["n_people"] for row in content["strata"]) == 8


@pytest.mark.fault
def test_traces_that_the_policy_chose_are_no_evidence_but_weigh_in_strata() -> None:
    project, machine, traces = label_project()
    traces[0].draws.create(
        project=project, batch=1, rank=1, arm="policy", q=0.5, pool_size=8, n_left=8, drawn_at=factories.NOW
    )
    passport = machine_labels.issue_passport(machine)
    assert passport.content["overall"]["accuracy"]["n"] == 7
    assert sum(row["n_people"] for row in passport.content["strata"]) == 8
    assert passport.content["pool"]["error_rate"]["n_labeled"] == 8


@pytest.mark.fault
def test_headline_and_gold_do_not_change_with_machine_labels() -> None:
    project, machine, traces = label_project()
    submitted_work.refresh_quality(now=factories.NOW)
    before = project_stats.build_stats_content(project_id=project.pk, now=factories.NOW)
    other = factories.make_machine_rater(project, "judge: y")
    machine_labels.label_by_machine(other, dict.fromkeys(traces, 0))
    machine_labels.issue_passport(machine)
    after = project_stats.build_stats_content(project_id=project.pk, now=factories.NOW)
    assert after == before


@pytest.mark.fault
def test_job_issues_a_passport_that_the_page_and_the_judge_list_show(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    machine = factories.make_machine_rater(project)
    trace = factories.make_trace(project)
    machine_labels.label_by_machine(machine, {trace: None})
    machine_labels.settle([factories.make_rater(project)], trace, 1)
    client = personas.client("lead")
    address = reverse("dashboard:issue_passport", args=[project.slug, machine.pk])
    assert client.post(address, {"epsilon": "0.2"}).status_code == 302
    job = Job.objects.get(kind=passports.KIND)
    assert runner.run_job(job.pk, passports.run_passport_job, clock=lambda: factories.NOW) == "done"
    passport = MachinePassport.objects.get()
    assert (passport.epsilon, passport.issued_by) == (0.2, personas.cast.lead)
    page = client.get(reverse("dashboard:machine", args=[project.slug, machine.pk])).content.decode()
    assert 'data-passport="valid"' in page
    assert 'data-judged="1"' in page
    assert (
        f'data-machine="{machine.pk}"' in client.get(reverse("dashboard:judges", args=[project.slug])).content.decode()
    )
    newer = machine_labels.issue_passport(machine, now=LATER)
    passport.refresh_from_db()
    assert (passport.expired_because, newer.expired_at) == (PassportEnd.REPLACED, None)
    assert list(passports.list_history(machine)) == [newer, passport]
    earlier = client.get(reverse("dashboard:machine_passport", args=[project.slug, machine.pk, passport.pk]))
    page = earlier.content.decode()
    assert re.findall(r'data-passport-version="(\d+)" data-ended="(\w*)"', page) == [
        (str(newer.pk), ""),
        (str(passport.pk), "replaced"),
    ]
    assert 'data-passport="replaced"' in page


# Expiry


def make_judged(project: Project) -> tuple[Judge, MachinePassport]:
    judge = judged_project.make_judge(project)
    machine_labels.label_by_machine(judge.rater, {factories.make_trace(project): None})
    return judge, machine_labels.issue_passport(judge.rater)


def test_passport_stays_valid_without_a_change() -> None:
    _judge, passport = make_judged(factories.make_project())
    assert not passports.check_passport(passport=passport, now=LATER)
    passport.refresh_from_db()
    assert (passport.checked_at, passport.expired_at) == (LATER, None)
    assert passports.check_passports(now=LATER) == 0


def test_passport_expires_with_the_guideline() -> None:
    project = factories.make_project()
    _judge, passport = make_judged(project)
    project.guideline = Guideline.objects.create(project=project, version=1, body="New.", published_at=factories.NOW)
    project.save()
    assert passports.check_passports(now=LATER) == 1
    passport.refresh_from_db()
    assert passport.expired_because == PassportEnd.GUIDELINE


def test_passport_expires_with_the_prompt_and_the_model_that_answers() -> None:
    judge, passport = make_judged(factories.make_project())
    Judge.objects.filter(pk=judge.pk).update(prompt_digest="0" * 64)
    assert passports.check_passport(passport=passport, now=LATER)
    passport.refresh_from_db()
    assert passport.expired_because == PassportEnd.PROMPT
    again = machine_labels.issue_passport(judge.rater, now=LATER)
    run = JudgeRun.objects.create(judge=judge, last_trace=1, asked_at=LATER)
    trace = Trace.objects.earliest("pk")
    JudgeVote.objects.create(
        judge=judge, run=run, trace=trace, number=0, state="parsed", served_model="other", answered_at=LATER
    )
    assert passports.check_passport(passport=again, now=LATER)
    again.refresh_from_db()
    assert again.expired_because == PassportEnd.MODEL


@pytest.mark.parametrize(("n_wrong", "expires"), [(1, False), (8, True)])
def test_passport_expires_when_agreement_drops(*, n_wrong: int, expires: bool) -> None:
    project = factories.make_project(overlap=1)
    person, machine = factories.make_rater(project), factories.make_machine_rater(project)
    traces = [factories.make_trace(project) for _ in range(8)]
    machine_labels.label_by_machine(machine, dict.fromkeys(traces))
    passport = machine_labels.make_passport(machine)
    for number, trace in enumerate(traces):
        machine_labels.settle([person], trace, 0 if number < n_wrong else None, now=LATER)
    assert passports.check_passport(passport=passport, now=LATER) is expires
    passport.refresh_from_db()
    assert passport.n_retests == 8
    assert passport.expired_because == (PassportEnd.DRIFT if expires else "")
    assert Option.objects.filter(step__trace__in=traces).count() == 24
