"""Replays of recorded requests."""

import hashlib
import json

import pytest
from django.core.management import CommandError, call_command

from live import replay
from live.models import LivePolicy
from tests import factories
from tests.live import live_project
from tests.live.step_servers import ScriptedStep, StepServer, running_steps, write_sums

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("family", "mode"),
    [("vllm", "completions"), ("sglang", "completions"), ("llama_cpp", "completions"), ("vllm", "instructed")],
)
def test_replay_reproduces_what_the_server_writes_again(family: str, mode: str) -> None:
    rater = factories.make_rater(live_project.make_live_project(reserve_problem_share=0))
    with running_steps(StepServer()) as address:
        live_project.make_policy(rater.project, address, family=family, mode=mode)
        live_project.solve(live_project.begin(rater))
        found = replay.replay_requests(replay.list_recorded(rater.project))
    ((name, count),) = found.items()
    assert name == f"{mode} {family}"
    assert (count.share, count.n_unanswered, count.n_changed_prompts) == (1.0, 0, 0)
    assert count.n_options >= 12


def test_servers_without_a_seed_are_not_asked_again() -> None:
    rater, server = factories.make_rater(live_project.make_live_project(reserve_problem_share=0)), StepServer()
    with running_steps(server) as address:
        live_project.make_policy(rater.project, address, family="hosted", mode="instructed")
        live_project.solve(live_project.begin(rater))
        n_asked = len(server.requests)
        (count,) = replay.replay_requests(replay.list_recorded(rater.project)).values()
    assert (count.share, count.n_unseeded) == (None, count.n_requests)
    assert len(server.requests) == n_asked


def test_log_has_each_request_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    rater = factories.make_rater(live_project.make_live_project(slug="sums", reserve_problem_share=0))
    with running_steps(StepServer()) as address:
        live_project.make_policy(rater.project, address)
        live_project.solve(live_project.begin(rater))
    call_command("live", "log", "--project", "sums")
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["position"] for record in records] == [0, 1, 2, 3]
    assert {record["rater"] for record in records} == {str(rater.pseudonym)}
    for record in records:
        assert record["turn"]["chosen"] == 0
        assert [option["rating"] for option in record["options"]] == [1, 1, 1]
        assert record["policy"]["template_digest"]


def test_replay_reports_other_texts_and_other_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    project = live_project.make_live_project(slug="sums", reserve_problem_share=0)
    rater, server = factories.make_rater(project), StepServer()
    with running_steps(server) as address:
        live_project.make_policy(project, address)
        live_project.solve(live_project.begin(rater))

        def write_otherwise(prompt: str, seed: int, index: int) -> ScriptedStep:
            return ScriptedStep("Other.") if index == 0 else write_sums(prompt, seed, index)

        server.script = write_otherwise
        with pytest.raises(CommandError):
            call_command("live", "replay", "--project", "sums", "--least-share", "0.99")
        (row,) = json.loads(capsys.readouterr().out)
        assert row["reproduced"] / row["options"] == pytest.approx(2 / 3)
        LivePolicy.objects.update(template=hashlib.sha256().hexdigest() + "{problem}{prefix}")
        call_command("live", "replay", "--project", "sums")
        (row,) = json.loads(capsys.readouterr().out)
        assert row["changed_prompts"] == row["requests"] > 0
        server.is_up = False
