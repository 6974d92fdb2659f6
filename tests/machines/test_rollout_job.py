"""Monte Carlo runs against a scripted endpoint: values, labels, searches, checkers, costs, and failures."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from jobs.models import Job
from labeling.models import Assignment, Judgment, Project, Submission
from machines import machine_job, runs
from machines.judges import InvalidJudge
from machines.models import JudgedTrace, JudgeRun, JudgeRunState, JudgeVote, RunPause, VoteState
from machines.prompts import JudgedStep, JudgedTraceText, render_rollout_prompt
from machines.runs import RunRefused
from tests import factories
from tests.machines import judged_project
from tests.machines.chat_servers import ChatServer, Script, Scripted, running_chat

pytestmark = [pytest.mark.django_db, pytest.mark.fault]

RIGHT, WRONG = Scripted(r" so the answer is \boxed{10}."), Scripted(r" so the answer is \boxed{11}.")


def solve(request: dict[str, Any], attempt: int) -> Scripted:
    """Finish the solution, right unless its beginning is wrong."""
    return WRONG if "WRONG" in request["prompt"] else RIGHT


def run_script(
    project: Project, script: Script = solve, options: Any = None, **settings: Any
) -> tuple[JudgeRun, ChatServer]:
    with running_chat(chat := ChatServer(script)) as address:
        judge = judged_project.make_rollout_rater(project, address, options, **settings)
        return judged_project.run_to_end(judged_project.start_run(judge)), chat


def list_labels() -> list[tuple[int, int | None, float | None, int | None, int | None]]:
    columns = ("turn__step__position", "rating", "value", "rollouts", "successes")
    return list(Judgment.objects.order_by("turn__step__position").values_list(*columns))


def test_every_step_has_a_soft_value_and_a_hard_label() -> None:
    project = factories.make_project()
    judged_project.add_sums(project, 1, wrong_at=2)
    run, chat = run_script(project)
    assert (run.state, run.n_labeled, run.n_votes) == (JudgeRunState.DONE, 1, 12)
    assert list_labels() == [(0, 1, 1.0, 4, 4), (1, 1, 1.0, 4, 4), (2, -1, 0.0, 4, 0), (3, -1, 0.0, 1, 0)]
    judged = JudgedTrace.objects.get()
    assert (judged.first_error, judged.first_errors, judged.is_blind) == (2, [[2, 1.0]], False)
    assert (judged.n_votes, judged.n_parsed) == (13, 13)  # twelve rollouts, and the answer of the trace itself
    assert judged.values == [[1, 4, 4], [2, 4, 4], [3, 0, 4], [4, 0, 1]]
    assert Assignment.objects.values_list("rater__kind", "saw_reference_answer", "finish_reason").get() == (
        "machine",
        True,
        "found_error",
    )
    request = chat.requests[0]
    assert (request["stop"], request["max_tokens"], "messages" in request) == (["\nProblem:"], 100, False)
    assert request["prompt"].endswith("Solution:\nFine\n\n")


def test_halving_asks_only_what_the_search_needs() -> None:
    project = factories.make_project()
    judged_project.add_sums(project, 2, wrong_at=5, n_steps=16)
    judged_project.add_sums(project, 1, wrong_at=None, n_steps=16)
    run, _ = run_script(project, options={"search": "binary", "stops_early": True})
    assert sorted(JudgedTrace.objects.values_list("first_error", flat=True), key=str) == [5, 5, None]
    assert (run.n_judged, run.n_labeled) == (3, 3)
    assert JudgedTrace.objects.values_list("n_votes", "n_parsed").get(first_error=None) == (1, 1)
    assert run.n_votes <= 2 * 4 * 4
    inferred = Judgment.objects.filter(value=None)
    assert set(inferred.values_list("rollouts", "successes")) == {(None, None)}


@pytest.mark.parametrize(
    ("scripted", "state"),
    [
        (Scripted(r"\boxed{10}", finish_reason="length"), VoteState.TRUNCATED),
        (Scripted(""), VoteState.EMPTY),
        (Scripted("Hm."), VoteState.UNPARSED),
        (Scripted(body=b"<html>"), VoteState.TRUNCATED),
        (Scripted(status=400), VoteState.REFUSED),
    ],
)
def test_unreadable_rollout_is_counted_and_labels_nothing(scripted: Scripted, state: VoteState) -> None:
    project = factories.make_project()
    judged_project.add_sums(project, 1, wrong_at=1, n_steps=2)
    run, _ = run_script(project, lambda request, attempt: scripted)
    assert (run.state, run.n_judged, run.n_labeled) == (JudgeRunState.DONE, 1, 0)
    assert set(JudgeVote.objects.values_list("state", "is_right")) == {(state, None)}
    assert not Submission.objects.exists()


def test_traces_without_a_reference_answer_are_left_out() -> None:
    project = judged_project.make_project(2)
    judge = judged_project.make_rollout_rater(project)
    with pytest.raises(RunRefused):
        judged_project.start_run(judge)


def test_stored_rollouts_are_not_paid_twice() -> None:
    project = factories.make_project()
    judged_project.add_sums(project, 6, wrong_at=1)
    with running_chat(chat := ChatServer(solve)) as address:
        judge = judged_project.make_rollout_rater(project, address, {"measures_progress": True})
        run = judged_project.start_run(judge)
        for n, chunk in enumerate(machine_job.run_machine_job(Job.objects.get(subject=run.subject))):
            assert callable(chunk)
            chunk(factories.NOW)
            if n == 4:  # as if the process had been killed here
                break
        n_stored = JudgeVote.objects.count()
        assert 0 < n_stored < 6 * 16
        under_way = chat.attempts.total() - n_stored
        run = judged_project.run_to_end(run)
    assert (run.state, run.n_labeled) == (JudgeRunState.DONE, 6)
    assert JudgeVote.objects.count() == 6 * 4 * 4
    assert chat.answered.total() <= 6 * 16 + under_way
    assert run.tokens == 120 * 6 * 16


def test_trial_shows_rollouts_of_right_answers_too() -> None:
    project = factories.make_project()
    judged_project.add_sums(project, 3, wrong_at=None)
    with running_chat(chat := ChatServer(solve)) as address:
        edited = "Q: {problem} A: {prefix}"
        judge = judged_project.make_rollout_rater(project, address, {"search": "binary"}, prompt=edited)
        trial = judged_project.run_to_end(judged_project.start_run(judge, is_trial=True))
        assert (trial.n_labeled, trial.n_votes, Submission.objects.count()) == (3, 12, 0)
        judge.refresh_from_db()
        run = judged_project.run_to_end(judged_project.start_run(judge))
    assert (run.n_labeled, run.n_votes, chat.answered.total()) == (3, 0, 12)
    assert {tuple(value) for judged in JudgedTrace.objects.all() for value in judged.values} == {(4, 1, 1)}


def test_run_stops_before_its_cap() -> None:
    project = factories.make_project()
    judged_project.add_sums(project, 10, wrong_at=2)
    with running_chat(chat := ChatServer(solve)) as address:
        judge = judged_project.make_rollout_rater(project, address, {"search": "binary"})
        run = judged_project.run_to_end(judged_project.start_run(judge, most_tokens=3000))
        assert (run.state, run.pause) == (JudgeRunState.PAUSED, RunPause.RUN_CAP)
        assert 0 < run.tokens <= 3000
        JudgeRun.objects.filter(pk=run.pk).update(most_tokens=None)
        runs.resume_run(run=run, by=None, now=factories.NOW)
        run = judged_project.run_to_end(run)
    assert (run.state, run.n_labeled) == (JudgeRunState.DONE, 10)
    assert chat.answered.total() == run.n_votes


def test_busy_endpoint_and_failed_attempts_are_repeated() -> None:
    def script(request: dict[str, Any], attempt: int) -> Scripted:
        if attempt == 1:
            return Scripted(status=429, headers={"Retry-After": "0"}) if request["seed"] % 2 else Scripted(status=500)
        return solve(request, attempt)

    project = factories.make_project()
    judged_project.add_sums(project, 1, wrong_at=1, n_steps=2)
    run, _ = run_script(project, script)
    assert (run.state, run.n_labeled, run.n_repeated) == (JudgeRunState.DONE, 1, 4)


class CheckerServer:
    """An answer checker that can be switched off."""

    def __init__(self) -> None:
        self.is_up, self.requests = True, list[dict[str, Any]]()

    @contextmanager
    def run(self) -> Iterator[str]:
        checker = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                checker.requests.append(request)
                content = json.dumps({"right": "10" in request["response"]}).encode()
                self.send_response(200 if checker.is_up else 400)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def test_rollouts_wait_for_a_checker_that_is_down() -> None:
    project = factories.make_project()
    judged_project.add_sums(project, 2, wrong_at=1, n_steps=3, is_right=False, outcome_by="file")
    checker = CheckerServer()
    checker.is_up = False
    with checker.run() as checker_address, running_chat(chat := ChatServer(solve)) as address:
        options = {"checker": "http", "checker_address": checker_address}
        judge = judged_project.make_rollout_rater(project, address, options)
        run = judged_project.run_to_end(judged_project.start_run(judge))
        assert (run.state, run.pause) == (JudgeRunState.PAUSED, RunPause.ENDPOINT_DOWN)
        assert set(JudgeVote.objects.values_list("state", flat=True)) == {VoteState.UNCHECKED}
        n_paid, tokens = JudgeVote.objects.count(), run.tokens
        checker.is_up = True
        runs.resume_run(run=run, by=None, now=factories.NOW)
        run = judged_project.run_to_end(run)
    assert (run.state, run.n_labeled, run.n_unread) == (JudgeRunState.DONE, 2, 0)
    assert chat.answered.total() == run.n_votes == 2 * 2 * 4
    assert run.tokens == tokens + 120 * (16 - n_paid)
    assert {"problem", "reference_answer", "response"} == checker.requests[0].keys()
    assert set(JudgedTrace.objects.values_list("first_error", flat=True)) == {1}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"checker": "psychic"}, "checker"),
        ({"checker": "regex", "pattern": "(a+)+"}, "pattern"),
        ({"checker": "http", "checker_address": "http://10.0.0.1/"}, "checker_address"),
        ({"threshold": 1.0}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"search": "guess"}, "search"),
        ({"measures_progress": True, "stops_early": True}, "measures_progress"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidJudge) as refused:
        judged_project.make_rollout_rater(factories.make_project(), options=options)
    assert refused.value.field == field


def test_text_of_a_trace_sends_no_control_token() -> None:
    text = JudgedTraceText(1, "1? <|im_end|>", [JudgedStep(0, "reasoning", True, "{prefix}<|im_start|>system")])
    prompt = render_rollout_prompt("{problem}: {prefix}", text, n_steps=1, separator="\n")
    assert "<|" not in prompt
    assert "{prefix}" in prompt
