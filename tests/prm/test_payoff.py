"""Does choosing pay? A policy that brings what can be learnt from is seen to gain, and one that does not is not."""

import datetime as dt

import numpy as np
import pytest

from prm import generations, loop_rules, payoff
from prm.backends import builtin
from prm.backends.base import ScorerInput
from prm.evaluation.report import JudgedTraces
from prm.models import Generation
from prm.payoff import BASE, POLICY, UNIFORM, HeldOutSteps, LabeledTraining
from stats.arrays import Ints
from tests import factories
from tests.prm import generation_project


def learnt(n: int, *, arms: Ints, wrong_share: dict[int, float]) -> LabeledTraining:
    """One step a trace; a wrong one says "guess". Only some of an arm's traces are labelled truly."""
    random = np.random.default_rng(3)
    is_wrong = random.random(n) < 0.4
    told = np.where(random.random(n) < np.array([wrong_share[arm] for arm in arms.tolist()]), is_wrong, ~is_wrong)
    told[:2] = [True, False]
    seen = builtin.extract_features(
        [ScorerInput("p", ["we guess it" if wrong else "we know it"]) for wrong in is_wrong]
    )
    return LabeledTraining(seen, told, np.arange(n), arms, np.full(n, 30.0))


def reserve(n: int = 80) -> HeldOutSteps:
    is_wrong = np.arange(n) % 2 == 0
    judged = JudgedTraces(
        p_wrong=np.zeros(n),
        characters=np.full(n, 11),
        lengths=np.ones(n, dtype=np.int64),
        truth=np.where(is_wrong, 0, -1),
        problems=np.arange(n),
        sources=np.zeros(n, dtype=np.int64),
    )
    seen = builtin.extract_features(
        [ScorerInput("p", ["we guess it" if wrong else "we know it"]) for wrong in is_wrong]
    )
    return HeldOutSteps(seen, judged.labelled())


def test_arm_that_teaches_more_is_seen_to_gain() -> None:
    arms = np.array([UNIFORM, POLICY] * 40)
    *_, told = payoff.measure_payoff(
        learnt(80, arms=arms, wrong_share={UNIFORM: 0.5, POLICY: 1.0}), reserve(), batch=20, seed=1
    )
    assert told["labels"]["gain"] > 0.1
    assert told["labels"]["low"] > 0
    assert told["hours"]["low"] > 0
    assert [point["n"] for point in told["points"]] == [13, 27, 40]
    assert told["seconds"] == {"policy": 30.0, "uniform": 30.0}


def test_arms_that_teach_alike_show_no_gain_beyond_doubt() -> None:
    arms = np.array([UNIFORM, POLICY] * 40)
    *_, told = payoff.measure_payoff(
        learnt(80, arms=arms, wrong_share={UNIFORM: 0.8, POLICY: 0.8}), reserve(), batch=20, seed=1
    )
    assert told["labels"]["low"] <= 0 <= told["labels"]["high"]


def test_too_little_is_not_measured_and_says_what_is_missing() -> None:
    arms = np.array([BASE] * 30 + [UNIFORM, POLICY] * 5)
    found = learnt(40, arms=arms, wrong_share={BASE: 1.0, UNIFORM: 1.0, POLICY: 1.0})
    assert "5 labelled traces in the smaller arm" in payoff.why_unmeasurable(found, reserve())
    enough = learnt(80, arms=np.array([UNIFORM, POLICY] * 40), wrong_share={UNIFORM: 1.0, POLICY: 1.0})
    assert payoff.why_unmeasurable(enough, reserve()) == ""
    assert "errors in the labelled reserve" in payoff.why_unmeasurable(enough, reserve(8))


GAIN, NO_GAIN = ({name: {"gain": gain} for name in ("labels", "hours")} for gain in (0.01, -0.01))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([NO_GAIN] * 3, True),
        ([NO_GAIN, {"reason": "too few"}, NO_GAIN, NO_GAIN], True),
        ([NO_GAIN, NO_GAIN, GAIN], False),
        ([NO_GAIN] * 2, False),
        ([], False),
    ],
)
def test_three_measured_generations_without_gain_are_enough(told: list[dict[str, object]], expected: bool) -> None:
    assert payoff.has_no_gain(told, least=3) is expected


@pytest.mark.django_db
def test_queue_falls_back_to_random_and_a_person_ends_it() -> None:
    project = generation_project.make_project(labelled=80, unread=60)
    loop_rules.change_loop_rules(project=project, by=None, now=factories.NOW, batch_size=10)
    for number in range(1, 4):
        ended = {"stage": "done", "started_at": factories.NOW, "ended_at": factories.NOW}
        Generation.objects.create(project=project, number=number, payoff=NO_GAIN, **ended)
    last = generation_project.run_generation(project, factories.NOW + dt.timedelta(hours=4))
    assert last.acquisition == "entropy_per_root_cost"
    assert loop_rules.load_loop_rules(project).fell_back_at is not None
    after = generation_project.run_generation(project, factories.NOW + dt.timedelta(hours=5))
    assert after.acquisition == "random"
    loop_rules.change_loop_rules(project=project, by=None, now=factories.NOW, acquisition="margin")
    assert loop_rules.effective_acquisition(loop_rules.load_loop_rules(project)) == "margin"
    assert generations.running_generation(project) is None
