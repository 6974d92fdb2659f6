"""Simulated raters fill the demo with plausible labels, are marked as simulated, and leave work for people."""

import copy
import datetime as dt
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from pytest_django.plugin import DjangoDbBlocker

from accounts import tokens
from accounts.models import LinkPurpose
from demo import live_sessions, make_projects, plans, rate_traces, records, simulated_raters
from demo.monitors import verdicts
from formats import label_sets
from labeling import queue
from labeling.models import AgreementTally, GoldAnswer, Judgment, Rater, Settlement, Submission, TraceAnswer
from labeling.models.project import Protocol
from labeling.models.rater import RaterKind
from labeling.models.visibility import VisibilityCondition
from labeling.quality import clause_report, consensus, monitors
from labeling.quality.adjudication import list_contested
from labeling.quality.project_stats import list_daily_stats, load_project_stats
from live import policies
from prm.evaluation.gate import GateReason
from tests import factories, module_rows
from tests.demo.test_make_projects import give_consent_and_read_guideline
from tests.prm import generation_project

pytestmark = [pytest.mark.django_db, pytest.mark.fault]  # the demo takes seconds to make


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[make_projects.DemoProjects]:
    with module_rows.keep_rows(django_db_blocker):
        with django_db_blocker.unblock():
            demo = make_projects.make_demo(now=factories.NOW)
        yield demo


@pytest.fixture
def demo(made: make_projects.DemoProjects) -> make_projects.DemoProjects:
    return copy.deepcopy(made)


def test_rate_fills_every_chart_matrix_and_queue(demo: make_projects.DemoProjects, now: dt.datetime) -> None:
    math = demo.projects[0]
    stats = load_project_stats(project_id=math.pk)
    assert stats is not None
    content = stats.content
    assert set(content["settlements"]) >= {"settled", "contested"}
    assert content["headline"]["steps"]["alpha_nominal"]["low"] > 0
    assert content["headline"]["first_error"]["exact"]["value"] > 0.4
    assert len(content["domain"]) == 6
    assert len(content["days"]) > 15
    assert list_daily_stats(project_id=math.pk).count() >= 5
    assert len(content["raters"]) == len(simulated_raters.SIMULATED_RATERS)
    assert list_contested(project_id=math.pk).exists()
    gate = generation_project.run_generation(math, now).gate  # the held-out set is labeled
    assert gate["why"] == GateReason.FIRST
    assert gate["counts"]["problems"] >= 8
    assert gate["figures"]["risk_set_auc_length_matched"]["interval"]
    # A second run adds nothing.
    before = Submission.objects.count()
    make_projects.make_demo(now=now)
    assert (Submission.objects.count(), Settlement.objects.filter(is_due=True).count()) == (before, 0)


def test_rate_marks_simulated_raters_and_pauses_the_hasty_one(demo: make_projects.DemoProjects) -> None:
    math = demo.projects[0]
    crew = Rater.objects.filter(project=math, user__username__startswith="simulated-").select_related("user")
    assert {rater.user.name for rater in crew if rater.user} == {
        rater.name for rater in simulated_raters.SIMULATED_RATERS
    }
    assert all("Simulated" in rater.name for rater in simulated_raters.SIMULATED_RATERS)
    assert [rater.user.username for rater in crew if rater.paused_at and rater.user] == ["simulated-6"]
    assert set(GoldAnswer.objects.values_list("rater", flat=True)) == {rater.pk for rater in crew}
    by_people = Submission.objects.filter(assignment__rater__kind=RaterKind.MEMBER)
    assert not by_people.exclude(assignment__rater__user__username__startswith="simulated-").exists()


def test_consensus_mostly_matches_the_truth_and_work_is_left_for_people(
    demo: make_projects.DemoProjects, now: dt.datetime
) -> None:
    """The consensus of simulated raters matches the generator's truth in most traces."""
    math = demo.projects[0]
    plan = plans.PLANS[0]
    assert plan.generate is not None
    truths = {
        records.record_digest(records.build_record(trace, policy=plan.policy)): trace
        for trace in plan.generate(seed=make_projects.SEED)
    }
    truth = rate_traces.load_truths(math, truths)
    settled = list(consensus.current_revisions(project_id=math.pk))
    right = sum(row.first_error == truth[row.trace_id].first_error for row in settled)
    assert right / len(settled) > 0.8
    for project in demo.projects:
        if project.protocol == Protocol.LIVE:
            continue
        rater = Rater.objects.get(project=project, user=demo.annotator)
        give_consent_and_read_guideline(rater, now)
        assert queue.claim_trace(rater_id=rater.pk, now=now, chance=0.9).trace_id
    assert AgreementTally.objects.filter(project=math, second=None).count() < 10


def test_make_demo_prints_links_that_work_once(
    demo: make_projects.DemoProjects, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("make_demo", "--origin", "http://127.0.0.1:8123/")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["lead", "annotator", "engineer"]
    address = lines[1].split(": ")[1]
    assert address.startswith("http://127.0.0.1:8123/")
    token = address.rstrip("/").rpartition("/")[2]
    now = dt.datetime.now(dt.UTC)
    assert tokens.use_link(token=token, purpose=LinkPurpose.LOGIN, now=now).username == "annotator"
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.use_link(token=token, purpose=LinkPurpose.LOGIN, now=now)


def test_simulated_raters_answer_questions_on_the_whole_trace(demo: make_projects.DemoProjects) -> None:
    agents = demo.projects[1]
    n_questions = len(agents.trace_questions)
    assert n_questions > 1
    answers = TraceAnswer.objects.filter(assignment__project=agents)
    assert answers.count() == n_questions * Submission.objects.filter(project=agents).count() > 0
    stats = load_project_stats(project_id=agents.pk)
    assert stats is not None
    assert set(stats.content["answers"]) == {question["code"] for question in agents.trace_questions}


def test_simulated_raters_cite_clauses(demo: make_projects.DemoProjects) -> None:
    report = clause_report.build_clause_report(demo.projects[2])
    assert report.n_ratings > 0
    assert "5" in [clause.code for clause in report.never_cited]
    assert report.most_contested
    assert [version.version for version in report.versions] == [1]


def test_simulated_raters_describe_errors_and_mark_recovery(demo: make_projects.DemoProjects) -> None:
    recovery = demo.projects[3]
    judgments = Judgment.objects.filter(turn__assignment__project=recovery)
    marks = set(judgments.exclude(error_link="").values_list("error_link", flat=True))
    assert marks  # which ones depends on the ids of rows, which order the queue
    assert marks <= set(label_sets.ERROR_LINKS)
    assert judgments.filter(rating=-1).exclude(category="").exclude(severity=None).exists()
    stats = load_project_stats(project_id=recovery.pk)
    assert stats is not None
    assert set(stats.content["answers"]) == {"final_label", "noticed"}


def test_people_and_machines_are_compared_under_each_condition(demo: make_projects.DemoProjects) -> None:
    project = demo.projects[4]
    query = monitors.make_query(project)
    assert query is not None
    rows = {(row.machine, row.condition): row.figures for row in monitors.measure_monitors(project, query)}
    assert {condition for machine, condition in rows if not machine} == set(VisibilityCondition.values)
    assert {machine for machine, _ in rows} == {"", *verdicts.MACHINES}
    keyword, judge = rows["keyword-monitor", "both"], rows["judge-monitor", "both"]
    assert (keyword.tnr.value, keyword.tpr.value) == (1.0, 0.8)  # it misses what only actions show
    assert judge.interval


def test_live_project_is_open_and_has_solutions(demo: make_projects.DemoProjects) -> None:
    project = demo.projects[-1]
    assert policies.find_open_policy(project) is not None
    done = Submission.objects.filter(project=project)
    assert [each.finish_reason for each in done] == ["solution"] * live_sessions.SESSIONS
