"""Runs of judges against a scripted endpoint: votes, labels, costs, caps, pauses, and what each failure does."""

import datetime as dt
import json
import threading
from decimal import Decimal
from typing import Any

import pytest

from jobs.models import Job
from labeling.models import Assignment, Judgment, Project, Submission
from labeling.models.rater import RaterKind
from labeling.projects import lifecycle
from machines import judge_job, judges, runs
from machines.models import JudgedTrace, JudgeRun, JudgeRunState, JudgeVote, RunPause, VoteState
from machines.runs import RunRefused
from machines.stored_answers import unpack_answer
from tests import factories
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, Script, Scripted, always, find_dead_port, running_chat

pytestmark = [pytest.mark.django_db, pytest.mark.fault]

FOUND = r"The second step is wrong. \boxed{1}"


def run_script(project: Project, script: Script, *, key: str = "", **settings: Any) -> JudgeRun:
    with running_chat(ChatServer(script, key=key)) as address:
        judge = judged_project.make_judge(project, address, **settings)
        return judged_project.run_to_end(judged_project.start_run(judge))


def list_states(run: JudgeRun) -> dict[str, int]:
    states = list(JudgeVote.objects.filter(judge=run.judge_id).values_list("state", flat=True))
    return {state: states.count(state) for state in sorted(set(states))}


def test_labels_are_submissions_of_a_machine_rater() -> None:
    project = judged_project.make_project(2)
    run = run_script(project, always(FOUND))
    assert run.state == JudgeRunState.DONE
    assert (run.n_traces, run.n_judged, run.n_labeled, run.n_votes) == (2, 2, 2, 2)
    assert set(Assignment.objects.values_list("rater__kind", "state", "finish_reason", "holds_slot")) == {
        (RaterKind.MACHINE, "submitted", "found_error", False)
    }
    judgments = Judgment.objects.filter(turn__assignment=Assignment.objects.earliest("pk")).order_by(
        "turn__step__position"
    )
    assert list(judgments.values_list("rating", "value", "rollouts", "successes")) == [(1, 1.0, 1, 1), (-1, 0.0, 1, 0)]


def test_yes_or_no_is_stored_with_its_probability() -> None:
    project = judged_project.make_project(1)
    text = "Step 0: Yes\nStep 1: No\nStep 2: Yes"
    chat = ChatServer(lambda request, attempt: Scripted(text, yes_shares=(0.9, 0.25, 0.6)))
    with running_chat(chat) as address:
        judge = judged_project.make_judge(project, address, contract="yes_no")
        judged_project.run_to_end(judged_project.start_run(judge))
    assert [request["top_logprobs"] for request in chat.requests] == [5]
    judgments = Judgment.objects.order_by("turn__step__position")
    assert list(judgments.values_list("rating", "rollouts")) == [(1, None), (-1, None), (1, None)]
    assert list(judgments.values_list("value", flat=True)) == pytest.approx([0.9, 0.225, 0.135])
    judged = JudgedTrace.objects.get()
    assert (judged.first_error, [error for error, _share in judged.first_errors]) == (1, [0, 1, 2, None])
    assert [share for _error, share in judged.first_errors] == pytest.approx([0.1, 0.675, 0.09, 0.135])


def test_votes_are_kept_as_received() -> None:
    run = run_script(judged_project.make_project(1), always(FOUND), n_votes=3, temperature=1.0)
    votes = JudgeVote.objects.order_by("number")
    assert [vote.number for vote in votes] == [0, 1, 2]
    assert all(b"The second step is wrong" in unpack_answer(bytes(vote.answer or b"")) for vote in votes)
    judged = JudgedTrace.objects.get()
    assert judged.first_errors == [[1, 1.0]]
    assert (judged.n_votes, judged.n_parsed, judged.is_blind) == (3, 3, True)
    assert (run.prompt_tokens, run.completion_tokens) == (300, 60)


def test_broken_clause_is_stored_with_the_label() -> None:
    project = judged_project.make_project(1)
    settings: dict[str, Any] = {"contract": "policy"}
    with pytest.raises(RunRefused):  # no policy to check
        run_script(project, always(""), **settings)
    lifecycle.publish_guideline(project=project, body="2.1 Never guess.", by=None, now=factories.NOW)
    steps = [{"step": n, "label": -1 if n == 1 else 1, "clause": "2.1", "reason": "A guess."} for n in range(3)]
    with running_chat(chat := ChatServer(always(json.dumps({"steps": steps})))) as address:
        judge = judged_project.make_judge(project, address, **settings)
        judged_project.run_to_end(judged_project.start_run(judge))
    assert "2.1 Never guess." in chat.requests[0]["messages"][0]["content"]
    broken = Judgment.objects.get(rating=-1)
    assert (broken.turn.step.position, broken.category, broken.reason) == (1, "2.1", "A guess.")


def test_votes_that_differ_give_shares() -> None:
    def script(request: dict[str, Any], attempt: int) -> Scripted:
        return Scripted(r"\boxed{2}" if request["seed"] % 2 else r"\boxed{-1}")

    run_script(judged_project.make_project(1), script, n_votes=8, temperature=1.0)
    judged = JudgedTrace.objects.get()
    votes = list(JudgeVote.objects.order_by("number").values_list("first_error", flat=True))
    assert dict(map(tuple, judged.first_errors)) == {error: votes.count(error) / 8 for error in set(votes)}


def test_costs_are_counted_by_tokens_and_prices() -> None:
    run = run_script(
        judged_project.make_project(3), always(FOUND), prompt_price=Decimal("2.5"), completion_price=Decimal(10)
    )
    assert run.tokens == 360
    assert run.money == Decimal("0.00135")
    assert JudgedTrace.objects.earliest("pk").money == Decimal("0.00045")


def test_answer_without_usage_is_estimated() -> None:
    run_script(judged_project.make_project(1), always(FOUND, has_usage=False))
    vote = JudgeVote.objects.get()
    assert vote.is_usage_estimated
    assert vote.prompt_tokens > 100
    assert vote.completion_tokens == -(-len(FOUND) // 4)


@pytest.mark.parametrize(
    ("scripted", "state"),
    [
        (Scripted("I cannot tell."), VoteState.UNPARSED),
        (Scripted(r"\boxed{1}", finish_reason="length"), VoteState.TRUNCATED),
        (Scripted(""), VoteState.EMPTY),
        (Scripted(r"\boxed{99}"), VoteState.OUT_OF_RANGE),
        (Scripted(body=b"<html>"), VoteState.TRUNCATED),
        (Scripted(body=b'{"choices": []}'), VoteState.TRUNCATED),
        (Scripted(body=b"[" * 200_000), VoteState.TRUNCATED),
        (Scripted(body=b'{"choices": [{"message": {"content": 7}, "finish_reason": "\\u0000"}]}'), VoteState.EMPTY),
        (Scripted(status=400), VoteState.REFUSED),
        (Scripted(status=413), VoteState.REFUSED),
    ],
)
def test_unreadable_answer_is_counted_and_labels_nothing(scripted: Scripted, state: VoteState) -> None:
    run = run_script(judged_project.make_project(2), lambda request, attempt: scripted)
    assert run.state == JudgeRunState.DONE
    assert list_states(run) == {state: 2}
    assert (run.n_judged, run.n_labeled, run.n_unread + run.n_failed) == (2, 0, 2)
    assert not Submission.objects.exists()


def test_unread_votes_are_paid_and_not_asked_for_again() -> None:
    project = judged_project.make_project(2)
    with running_chat(chat := ChatServer(always("Hm."))) as address:
        judge = judged_project.make_judge(project, address)
        judged_project.run_to_end(judged_project.start_run(judge))
        with pytest.raises(RunRefused):
            judged_project.start_run(judge)
    assert len(chat.requests) == 2


def test_busy_endpoint_is_asked_again_after_the_time_it_names() -> None:
    def script(request: dict[str, Any], attempt: int) -> Scripted:
        return Scripted(status=429, headers={"Retry-After": "1"}) if attempt == 1 else Scripted(FOUND)

    run = run_script(judged_project.make_project(3), script)
    assert (run.state, run.n_labeled, run.n_repeated) == (JudgeRunState.DONE, 3, 3)


@pytest.mark.parametrize("scripted", [Scripted(status=500), Scripted(FOUND, cut=20)])
def test_failed_attempt_is_repeated(scripted: Scripted) -> None:
    run = run_script(judged_project.make_project(1), lambda request, n: scripted if n == 1 else Scripted(FOUND))
    assert (run.state, run.n_labeled, run.n_repeated) == (JudgeRunState.DONE, 1, 1)


def test_time_out_is_repeated() -> None:
    def script(request: dict[str, Any], attempt: int) -> Scripted:
        return Scripted(FOUND, delay=3.0 if attempt == 1 else 0.0)

    run = run_script(judged_project.make_project(1), script, timeout=1.0)
    assert (run.state, run.n_labeled, run.n_repeated) == (JudgeRunState.DONE, 1, 1)


def test_long_wait_pauses_the_run_until_it_is_over() -> None:
    project = judged_project.make_project(2)
    run = run_script(project, always("", status=429, headers={"Retry-After": "900"}))
    assert (run.state, run.pause) == (JudgeRunState.PAUSED, RunPause.RATE_LIMIT)
    assert run.resumes_at == factories.NOW + dt.timedelta(minutes=15)
    assert not JudgeVote.objects.exists()
    assert runs.resume_due_runs(now=factories.NOW + dt.timedelta(minutes=14)) == 0
    assert runs.resume_due_runs(now=factories.NOW + dt.timedelta(minutes=15)) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusing_endpoint_pauses_until_a_person_resumes(status: int) -> None:
    run = run_script(judged_project.make_project(5), always("", status=status))
    assert (run.state, run.pause, run.resumes_at) == (JudgeRunState.PAUSED, RunPause.CONFIGURATION, None)
    assert str(status) in run.pause_line
    assert "\n" not in run.pause_line


def test_key_is_sealed_and_sent() -> None:
    project = judged_project.make_project(1)
    run = run_script(project, always(FOUND), key="sk-1")
    assert run.pause == RunPause.CONFIGURATION
    with running_chat(ChatServer(always(FOUND), key="sk-1")) as address:
        judge = judged_project.make_judge(project, address, key="sk-1")
        assert b"sk-1" not in bytes(judge.key or b"")
        assert judged_project.run_to_end(judged_project.start_run(judge)).state == JudgeRunState.DONE


def test_dead_endpoint_pauses_and_resumes() -> None:
    project = judged_project.make_project(6)
    port = find_dead_port()
    judge = judged_project.make_judge(project, f"http://127.0.0.1:{port}/v1")
    run = judged_project.run_to_end(judged_project.start_run(judge))
    assert (run.state, run.pause) == (JudgeRunState.PAUSED, RunPause.ENDPOINT_DOWN)
    assert "127.0.0.1" in run.pause_line
    assert run.resumes_at == factories.NOW + dt.timedelta(minutes=1)
    assert (run.reserved_tokens, JudgeVote.objects.count()) == (0, 0)
    with running_chat(ChatServer(always(FOUND)), port=port):
        assert runs.resume_due_runs(now=factories.NOW + dt.timedelta(minutes=1)) == 1
        run = judged_project.run_to_end(run)
    assert (run.state, run.n_labeled, run.n_pauses) == (JudgeRunState.DONE, 6, 0)


def test_trace_that_is_never_answered_fails_alone() -> None:
    project = judged_project.make_project(4)
    poison = project.traces.earliest("pk").problem.text

    def script(request: dict[str, Any], attempt: int) -> Scripted:
        is_poison = poison in request["messages"][0]["content"]
        return Scripted(status=500) if is_poison and len(chat.requests) < 40 else Scripted(FOUND)

    with running_chat(chat := ChatServer(script)) as address:
        judge = judged_project.make_judge(project, address, n_concurrent=1)
        run = judged_project.run_to_end(judged_project.start_run(judge))
        assert run.state == JudgeRunState.DONE
        assert list_states(run) == {VoteState.FAILED: 1, VoteState.PARSED: 3}
        chat.requests.extend([{}] * 40)  # from now on it answers
        second = judged_project.run_to_end(judged_project.start_run(judge))
    assert (second.n_traces, second.n_labeled) == (1, 1)
    assert list_states(second) == {VoteState.PARSED: 4}


def test_last_votes_fail_after_three_pauses() -> None:
    """The run cannot distinguish a dead endpoint from votes that always fail, so it ends after some waits."""
    project = judged_project.make_project(1)
    with running_chat(ChatServer(always("", status=503))) as address:
        judge = judged_project.make_judge(project, address)
        run = judged_project.run_to_end(judged_project.start_run(judge))
        for minutes in (1, 2):
            assert (run.state, run.pause) == (JudgeRunState.PAUSED, RunPause.ENDPOINT_DOWN)
            assert run.resumes_at == factories.NOW + dt.timedelta(minutes=minutes)
            runs.resume_run(run=run, by=None, now=factories.NOW)
            run = judged_project.run_to_end(run)
    assert run.state == JudgeRunState.DONE
    assert list_states(run) == {VoteState.FAILED: 1}
    assert not Submission.objects.exists()


def test_run_stops_before_its_cap() -> None:
    project = judged_project.make_project(10)
    with running_chat(chat := ChatServer(always(FOUND))) as address:
        judge = judged_project.make_judge(project, address, max_tokens=20)
        run = judged_project.run_to_end(judged_project.start_run(judge, most_tokens=1700))
        assert (run.state, run.pause, run.resumes_at) == (JudgeRunState.PAUSED, RunPause.RUN_CAP, None)
        assert 0 < run.tokens <= 1700
        assert len(chat.requests) == run.n_votes < 10


def test_project_cap_counts_all_runs() -> None:
    project = judged_project.make_project(10)
    with running_chat(ChatServer(always(FOUND))) as address:
        first = judged_project.make_judge(project, address, max_tokens=20, prompt_price=Decimal(1000))
        judged_project.run_to_end(judged_project.start_run(first, most_traces=4))  # costs 0.40
        judges.set_budget(project=project, most_tokens=None, most_money=Decimal(2), by=None, now=factories.NOW)
        second = judged_project.make_judge(project, address, max_tokens=20, prompt_price=Decimal(1000))
        run = judged_project.run_to_end(judged_project.start_run(second))
    assert run.pause == RunPause.PROJECT_CAP
    assert 0 < run.money <= Decimal("1.6")


def test_paused_run_continues_with_a_higher_cap() -> None:
    project = judged_project.make_project(6)
    with running_chat(chat := ChatServer(always(FOUND))) as address:
        judge = judged_project.make_judge(project, address, max_tokens=20)
        run = judged_project.run_to_end(judged_project.start_run(judge, most_tokens=1400))
        JudgeRun.objects.filter(pk=run.pk).update(most_tokens=100_000)
        runs.resume_run(run=run, by=None, now=factories.NOW)
        run = judged_project.run_to_end(run)
    assert (run.state, run.n_labeled, run.n_votes) == (JudgeRunState.DONE, 6, 6)
    assert len(chat.requests) == 6


def test_endpoint_gets_at_most_the_agreed_number_of_requests_at_once() -> None:
    project = judged_project.make_project(12)
    with running_chat(chat := ChatServer(always(FOUND, delay=0.05))) as address:
        judge = judged_project.make_judge(project, address, n_concurrent=3)
        judged_project.run_to_end(judged_project.start_run(judge))
    assert chat.most_at_once == 3


def test_trial_keeps_its_votes_and_labels_nothing() -> None:
    project = judged_project.make_project(5)
    with running_chat(chat := ChatServer(always(FOUND))) as address:
        judge = judged_project.make_judge(project, address, prompt="{problem} {steps} Which?")
        with pytest.raises(RunRefused):
            judged_project.start_run(judge)
        trial = judged_project.run_to_end(judged_project.start_run(judge, is_trial=True))
        assert (trial.n_traces, trial.n_judged, Submission.objects.count()) == (3, 3, 0)
        judge.refresh_from_db()
        run = judged_project.run_to_end(judged_project.start_run(judge))
    assert run.n_labeled == 5
    assert len(chat.requests) == 5  # the trial's answers were not paid twice
    assert run.n_votes == 2


def test_unreadable_trial_permits_no_run() -> None:
    project = judged_project.make_project(1)
    with running_chat(ChatServer(always("Hm."))) as address:
        judge = judged_project.make_judge(project, address, prompt="{problem} {steps} Which?")
        judged_project.run_to_end(judged_project.start_run(judge, is_trial=True))
    judge.refresh_from_db()
    with pytest.raises(RunRefused):
        judged_project.start_run(judge)


def test_cancelled_run_keeps_answers_that_arrive() -> None:
    project = judged_project.make_project(20)
    started = threading.Event()

    def script(request: dict[str, Any], attempt: int) -> Scripted:
        started.set()
        return Scripted(FOUND, delay=0.05)

    with running_chat(chat := ChatServer(script)) as address:
        judge = judged_project.make_judge(project, address, n_concurrent=2)
        run = judged_project.start_run(judge)
        job = Job.objects.get(subject=run.subject)
        for n, chunk in enumerate(judge_job.run_judge_job(job)):  # stepped as a worker would
            assert callable(chunk)
            chunk(factories.NOW)
            if n == 3:
                runs.cancel_run(run=run, by=None, now=factories.NOW)
    run.refresh_from_db()
    assert run.state == JudgeRunState.CANCELLED
    assert run.n_votes == sum(chat.answered.values()) < 20
    assert JudgeVote.objects.count() == run.n_votes


def test_one_unfinished_run_per_judge() -> None:
    judge = judged_project.make_judge(judged_project.make_project(1))
    judged_project.start_run(judge)
    with pytest.raises(RunRefused):
        judged_project.start_run(judge)


def test_scopes_choose_traces() -> None:
    project = judged_project.make_project(3)
    labeled, gold, _plain = project.traces.order_by("pk")
    factories.make_submitted(factories.make_rater(project), labeled)
    gold.gold.create(use="hidden", accepted_first_errors=[None], made_at=factories.NOW)
    judge = judged_project.make_judge(project)
    chosen = {}
    for scope in ("all", "labeled", "gold"):
        run = JudgeRun(judge=judge, scope=scope, last_trace=2**40, asked_at=factories.NOW)
        chosen[scope] = list(runs.select_traces(run).values_list("pk", flat=True))
    assert chosen == {"all": [labeled.pk, gold.pk, _plain.pk], "labeled": [labeled.pk], "gold": [gold.pk]}
