"""The example program solves problems to the right answer, and a replay returns the same options."""

import json

import pytest

from demo import live_problems
from live import completions, example_program, policies, prompts, replay
from live.models import LiveMode, LivePolicy
from live.policies import PolicySettings
from tests import factories
from tests.live import live_project


def solve(problem: str) -> str | None:
    """Follow a right step until the solution is complete, and return its answer."""
    steps: list[str] = []
    while len(steps) < 10:
        prompt = prompts.render_prompt(prompts.BUILTIN["example"], problem, steps, step_end="\n\n")
        ratings = example_program.rate_steps(prompt)
        answer = json.loads(example_program.write_answer({"prompt": prompt, "seed": 1, "n": 3, "stop": ["\n\n"]}))
        right = [choice for choice in answer["choices"] if ratings.get(choice["text"]) == 1]
        assert {-1, 0, 1} == set(ratings.values())
        steps.append(right[0]["text"])
        if right[0]["stop_reason"] is None:
            return completions.find_final_answer(steps[-1])
    raise AssertionError("the solution does not end")


def test_program_solves_the_problems_of_the_demo() -> None:
    for problem in live_problems.generate_problems(seed="x"):
        assert solve(problem.text) == problem.answer


def test_program_has_no_step_for_another_problem() -> None:
    answer = json.loads(example_program.write_answer({"prompt": "Why?", "seed": 1, "n": 3, "stop": ["\n\n"]}))
    assert [choice["text"] for choice in answer["choices"]] == [""]


def test_numbers_of_any_length_are_read() -> None:
    assert example_program.rate_steps(f"{'9' * 5000} pens for 2 euros each. Solution: Together = {'9' * 5000}$")


@pytest.mark.django_db
def test_session_with_the_program_needs_no_server() -> None:
    rater = factories.make_rater(live_project.make_live_project(0, reserve_problem_share=0))
    (problem, *_others) = live_problems.generate_problems(seed="x")
    factories.make_problem(rater.project, problem.text)
    settings = PolicySettings(mode=LiveMode.EXAMPLE, address="http://unused/v1", family="hosted", key="unused")
    policy = policies.add_policy(project=rater.project, settings=settings, by=None, now=factories.NOW)
    assert (policy.address, policy.key) == ("", None)
    policies.mark_tried(policy=policy, now=factories.NOW)
    policies.open_policy(policy=LivePolicy.objects.get(), by=None, now=factories.NOW)
    session = live_project.begin(rater)
    turn = live_project.show(session)
    assert turn.shown
    (count,) = replay.replay_requests(replay.list_recorded(rater.project)).values()
    assert count.share == 1.0
