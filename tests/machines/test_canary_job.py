"""Runs over gaming canaries: votes, caps, resumed runs, the report of a judge, and the alarm."""

import re
from typing import Any

import pytest

from events.models import Event
from labeling.models import Submission
from machines import canary_reports, passports
from machines.models import CanaryVerdict, CanaryVote, JudgeRunState, JudgeVote, RunPause
from machines.runs import RunRefused
from prm import canaries
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, Scripted, always, running_chat
from tests.machines.machine_labels import issue_passport
from tests.prm import canary_project

pytestmark = pytest.mark.django_db
CLAIMS = ("certainly", "no doubt", "definitely", "beyond question")


def judge_sums(request: dict[str, Any], attempt: int) -> Scripted:
    """Find the first wrong sum, whatever else a step says."""
    text = request["messages"][0]["content"]
    steps = re.findall(r"<step_(\d+)>\n(.*?)\n</step_\1>", text, re.S)
    wrong = [
        place
        for place, step in steps
        for first, second, total in re.findall(r"(\d+) \+ (\d+) = (\d+)", step)
        if int(first) + int(second) != int(total)
    ]
    return Scripted(rf"\boxed{{{wrong[0] if wrong else -1}}}")


def judge_by_claims(request: dict[str, Any], attempt: int) -> Scripted:
    """Believe every solution that sounds sure."""
    if any(claim in request["messages"][0]["content"] for claim in CLAIMS):
        return Scripted(r"\boxed{-1}")
    return judge_sums(request, attempt)


@pytest.mark.fault
def test_judge_is_tested_and_a_later_version_is_compared() -> None:
    project = canary_project.make_project(30)
    row = canary_project.freeze(project, n=100)
    with running_chat(chat := ChatServer(judge_sums)) as address:
        first = judged_project.make_judge(project, address)
        capped = judged_project.start_run(first, scope="canaries", most_tokens=14_000)
        judged_project.run_to_end(capped)
        assert (capped.state, capped.pause) == (JudgeRunState.PAUSED, RunPause.RUN_CAP)
        n_paid = CanaryVote.objects.count()
        assert 0 < n_paid < capped.n_traces
        assert canary_reports.build_judge_report(first) is None
        capped.most_tokens = None
        capped.save()
        judged_project.resume(capped)
        assert (capped.state, capped.n_judged) == (JudgeRunState.DONE, row.canaries.count())
        assert chat.answered.most_common(1)[0][1] == 1  # nothing was paid twice
        with pytest.raises(RunRefused):
            judged_project.start_run(first, scope="canaries")
    report = canary_reports.build_judge_report(first)
    assert report is not None
    rates = {each["edit"]: each for each in report["edits"]}
    assert (rates["corrupt_number"]["falls"]["value"], rates["confidence"]["rises"]["value"]) == (1.0, 0.0)
    with running_chat(ChatServer(judge_by_claims)) as address:
        second = judged_project.make_judge(project, address)
        judged_project.run_to_end(judged_project.start_run(second, scope="canaries"))
    report = canary_reports.build_judge_report(second)
    assert report is not None
    assert {each["edit"]: each for each in report["edits"]}["confidence"]["rises"]["value"] > 0.9
    assert report["comparison"]["before"] == first.label
    assert report["comparison"]["is_easier"]
    assert Event.objects.get(what=canaries.EASIER_TO_FOOL).subject == f"machine_rater:{second.rater_id}"
    assert not JudgeVote.objects.exists()
    assert not Submission.objects.exists()
    assert issue_passport(second.rater).content["canaries"]["n"] == 100
    assert [each.label for each in canary_reports.list_results(project)] == [second.label, first.label]


@pytest.mark.fault
def test_unread_answers_are_counted_and_left_out() -> None:
    project = canary_project.make_project()
    canary_project.freeze(project)
    with running_chat(ChatServer(always("no box"))) as address:
        judge = judged_project.make_judge(project, address)
        run = judged_project.run_to_end(judged_project.start_run(judge, scope="canaries"))
    assert (run.n_labeled, run.n_unread, run.n_judged) == (0, run.n_traces, run.n_traces)
    assert CanaryVerdict.objects.filter(n_parsed=0).count() == run.n_traces
    (result,) = canary_reports.list_results(project)
    assert (result.n_unread, result.report) == (run.n_traces, None)


def test_rollouts_are_not_tested() -> None:
    project = canary_project.make_project()
    canary_project.freeze(project)
    with pytest.raises(RunRefused):
        judged_project.start_run(judged_project.make_rollout_rater(project), scope="canaries")


def test_judge_without_canaries_has_nothing_to_do() -> None:
    judge = judged_project.make_judge(judged_project.make_project(1))
    for is_trial in (False, True):
        with pytest.raises(RunRefused):
            judged_project.start_run(judge, scope="canaries", is_trial=is_trial)
    assert passports.build_passport(judge.rater, epsilon=0.1)["canaries"] is None


@pytest.mark.parametrize(
    ("first_errors", "places", "passed"),
    [
        ([[None, 1.0]], [2], 1.0),
        ([[1, 0.25], [3, 0.25], [None, 0.5]], [0, 1], 0.75),
        ([[1, 0.5], [None, 0.5]], [0], 1.0),
        ([[0, 1.0]], [2], 0.0),
    ],
)
def test_votes_without_an_earlier_error_pass(first_errors: Any, places: list[int], passed: float) -> None:
    assert canary_reports.measure_passed(first_errors, places) == passed
