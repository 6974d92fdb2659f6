"""Is active selection helping? A policy with better labels shows a gain, an equal one does not."""

import datetime as dt

import numpy as np
import pytest

from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import TraceDraw
from prm import generations, labeled_traces, payoff
from prm.backends import builtin
from prm.backends.base import ScorerInput
from prm.evaluation.labeled_steps import JudgedTraces
from prm.models import Generation
from prm.payoff import BASE, POLICY, UNIFORM, HeldOutSteps, LabeledTraining
from prm.selection import acquisitions
from stats.arrays import Ints
from tests import factories
from tests.prm import generation_project

BOTH = np.array([UNIFORM, POLICY] * 40)


def make_training(sources: Ints, *, true_share: dict[int, float]) -> LabeledTraining:
    """Make one step per trace; a wrong one says "guess". Only a share of each source has true labels."""
    random, n = np.random.default_rng(3), len(sources)
    is_wrong = random.random(n) < 0.4
    is_true = random.random(n) < np.array([true_share[source] for source in sources.tolist()])
    labels = np.where(is_true, is_wrong, ~is_wrong)
    labels[:2] = [True, False]
    features = builtin.extract_features(
        [ScorerInput("p", ["we guess it" if wrong else "we know it"]) for wrong in is_wrong]
    )
    return LabeledTraining(features, labels, np.arange(n), sources, np.full(n, 30.0))


def make_held_out(n: int = 80) -> HeldOutSteps:
    is_wrong = np.arange(n) % 2 == 0
    judged = JudgedTraces(
        p_wrong=np.zeros(n),
        characters=np.full(n, 11),
        lengths=np.ones(n, dtype=np.int64),
        truth=np.where(is_wrong, 0, -1),
        problems=np.arange(n),
        sources=np.zeros(n, dtype=np.int64),
    )
    features = builtin.extract_features(
        [ScorerInput("p", ["we guess it" if wrong else "we know it"]) for wrong in is_wrong]
    )
    return HeldOutSteps(features, judged.labeled_steps())


@pytest.mark.fault
def test_source_with_better_labels_shows_a_gain() -> None:
    training = make_training(BOTH, true_share={UNIFORM: 0.5, POLICY: 1.0})
    *_, result = payoff.measure_payoff(training, make_held_out(), batch=20, seed=1)
    assert result["labels"]["gain"] > 0.1
    assert result["labels"]["low"] > 0
    assert result["hours"]["low"] > 0
    assert [point["n"] for point in result["points"]] == [13, 27, 40]
    assert result["seconds"] == {"policy": 30.0, "uniform": 30.0}


@pytest.mark.fault
def test_equal_sources_show_no_significant_gain() -> None:
    training = make_training(BOTH, true_share={UNIFORM: 0.8, POLICY: 0.8})
    *_, result = payoff.measure_payoff(training, make_held_out(), batch=20, seed=1)
    assert result["labels"]["low"] <= 0 <= result["labels"]["high"]


def test_shortage_of_labels_is_reported() -> None:
    true_share = {BASE: 1.0, UNIFORM: 1.0, POLICY: 1.0}
    small = make_training(np.array([BASE] * 30 + [UNIFORM, POLICY] * 5), true_share=true_share)
    assert payoff.find_shortage(small, make_held_out())["shortage"] == "few_traces"
    enough = make_training(BOTH, true_share=true_share)
    assert payoff.find_shortage(enough, make_held_out()) == {}
    assert payoff.find_shortage(enough, make_held_out(8))["shortage"] == "few_errors"


GAIN, NO_GAIN = ({name: {"gain": gain} for name in ("labels", "hours")} for gain in (0.01, -0.01))


@pytest.mark.parametrize(
    ("payoffs", "expected"),
    [
        ([NO_GAIN] * 3, True),
        ([NO_GAIN, {"shortage": "few_traces"}, NO_GAIN, NO_GAIN], True),
        ([NO_GAIN, NO_GAIN, GAIN], False),
        ([NO_GAIN] * 2, False),
        ([], False),
    ],
)
def test_three_measured_generations_without_gain_are_enough(payoffs: list[dict[str, object]], expected: bool) -> None:
    assert payoff.has_no_gain(payoffs, least=3) is expected


@pytest.mark.django_db
@pytest.mark.fault
def test_project_falls_back_to_random_until_someone_chooses_again() -> None:
    project = generation_project.make_project(labeled=80, unread=60)
    generations.change_loop_rules(project=project, by=None, now=factories.NOW, batch_size=10)
    for number in range(1, 4):
        fields = {"stage": "done", "started_at": factories.NOW, "ended_at": factories.NOW}
        Generation.objects.create(project=project, number=number, payoff=NO_GAIN, **fields)
    last = generation_project.run_generation(project, factories.NOW + dt.timedelta(hours=4))
    assert last.acquisition == acquisitions.DEFAULT
    assert generations.load_loop_rules(project).fell_back_at is not None
    after = generation_project.run_generation(project, factories.NOW + dt.timedelta(hours=5))
    assert after.acquisition == "random"
    generations.change_loop_rules(project=project, by=None, now=factories.NOW, acquisition="margin")
    assert generations.effective_acquisition(generations.load_loop_rules(project)) == "margin"
    assert generations.running_generation(project) is None


@pytest.mark.django_db
def test_estimate_uses_the_draws_before_the_first_unlabeled_one() -> None:
    project = generation_project.make_project(labeled=40, unread=3)
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="t", now=factories.NOW, by=None
    )
    shares = labeled_traces.load_error_shares(frozen)
    labeled, unlabeled = sorted(shares)[:25], project.traces.exclude(pk__in=shares).values_list("pk", flat=True)[0]
    for rank, trace in enumerate([*labeled, unlabeled, sorted(shares)[25]], start=1):
        numbers = {"batch": 1, "rank": rank, "q": 1 / (44 - rank), "pool_size": 43, "n_left": 44 - rank}
        TraceDraw.objects.create(project=project, trace_id=trace, arm="uniform", drawn_at=factories.NOW, **numbers)
    estimate = payoff.estimate_from_batch(project_id=project.pk, batch=1, manifest=frozen)
    losses = [shares[trace] for trace in labeled]
    assert (estimate["n"], estimate["n_drawn"]) == (25, 27)
    assert estimate["plain"] == pytest.approx(sum(losses) / 25)  # all draws were equally likely
    assert set(estimate["domains"]) == {"sums", "totals"}
    TraceDraw.objects.filter(rank=3).update(trace_id=project.traces.exclude(pk__in=[*shares, unlabeled])[0].pk)
    assert "plain" not in payoff.estimate_from_batch(project_id=project.pk, batch=1, manifest=frozen)


@pytest.mark.parametrize(("spread", "is_withheld"), [(0.01, False), (0.5, True)])
def test_prediction_beyond_the_reach_of_an_auc_is_withheld(spread: float, is_withheld: bool) -> None:
    """The curves of replicates rise or fall by `spread` between two sizes, so their extrapolation differs by more."""
    rises = np.linspace(-spread, spread, 20)
    curves = np.column_stack([0.5 - rises / 2, 0.5 + rises / 2])
    hint = payoff._predict_next_gain(curves, np.array([10, 20]), 0, 200)
    assert hint["batch"] == 200
    assert hint.get("is_withheld", False) == is_withheld
    assert ("gain" in hint) != is_withheld
