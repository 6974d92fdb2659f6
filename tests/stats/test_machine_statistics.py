"""Statistics of machine raters: published oracles, hand-computed cases, and simulated worlds with known truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench import machine_raters
from stats import (
    alternative_annotator,
    calibration,
    drift,
    machine_agreement,
    machine_licenses,
    prediction_powered,
    reliability,
)
from stats.alternative_annotator import ItemAnswers
from stats.estimates import Reason
from stats.machine_agreement import MachinePairs
from stats.machine_licenses import StratumEvidence
from tests.stats.framing_annotations import PATTERNS, PUBLISHED


def read_patterns(text: str) -> ItemAnswers:
    rows = np.array(
        [[*"nyr-"].index(letter) for word in text.split() for letter in word[:5] * int(word[5:])], dtype=np.int64
    ).reshape(-1, 5)
    items, people = np.nonzero(rows[:, 1:] != 3)
    return ItemAnswers(items, people, rows[items, people + 1], rows[:, 0], np.arange(len(rows)))


@pytest.mark.parametrize("model", PUBLISHED)
def test_alternative_annotator_test_gives_the_published_figures(model: str) -> None:
    found = alternative_annotator.compare_with_people(read_patterns(PATTERNS[model]), epsilon=0.15)
    assert found.winning_rate is not None
    assert found.advantage is not None
    assert (found.winning_rate, round(found.advantage, 2)) == PUBLISHED[model]
    assert found.is_passed == (found.winning_rate >= 0.5)


def test_alternative_annotator_test_is_student_s_with_one_item_per_problem() -> None:
    data = read_patterns(PATTERNS["llama-31"])
    machine, person, usable = alternative_annotator._find_wins(data)
    found = alternative_annotator.compare_with_people(data, epsilon=0.15)
    for each in found.people:
        lead = (person.astype(int) - machine)[usable & (data.people == each.person)]
        assert each.p == pytest.approx(stats.ttest_1samp(lead, 0.15, alternative="less").pvalue, rel=1e-9)


def test_repeated_items_of_a_problem_are_no_evidence_of_their_own() -> None:
    data = read_patterns(PATTERNS["mistral-v03"])
    few = ItemAnswers(data.items, data.people, data.answers, data.machine, data.problems // 8)
    alone, grouped = (alternative_annotator.compare_with_people(each, epsilon=0.15) for each in (data, few))
    assert grouped.advantage == alone.advantage
    assert grouped.interval is not None
    assert alone.interval is not None
    assert grouped.interval.high - grouped.interval.low > alone.interval.high - alone.interval.low


def test_two_people_are_too_few() -> None:
    data = read_patterns("nnn--99 yyy--99")
    found = alternative_annotator.compare_with_people(data, epsilon=0.2)
    assert (found.reason, found.is_passed) == (Reason.FEW_PEOPLE, False)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.2))
def test_false_discoveries_are_controlled_as_in_scipy(p_values: list[float], rate: float) -> None:
    p = np.array(p_values)
    adjusted = stats.false_discovery_control(p, method="by")
    found = alternative_annotator.reject_hypotheses(p, rate)
    assert found.tolist() == pytest.approx((adjusted <= rate).tolist()) or np.isclose(adjusted, rate).any()


def test_tuning_is_that_of_the_paper_for_separate_samples() -> None:
    """λ = Cov(Y, f) / ((1 + n/N) Var f), here with the variance of each sample."""
    random = np.random.default_rng(7)
    n, n_pool = 200, 2000
    values = (random.random(n + n_pool) < 0.3).astype(float)
    predicted = np.clip(0.5 * values + random.normal(0.2, 0.2, n + n_pool), 0, 1)
    is_labeled = np.arange(n + n_pool) < n
    pool = prediction_powered.label_pool(
        values=np.where(is_labeled, values, 0.0),
        weights=is_labeled.astype(float),
        predicted=predicted,
        problems=np.arange(n + n_pool),
        in_pool=~is_labeled,
    )
    found = prediction_powered.estimate_with_predictions(pool)
    y, f, rest = values[:n], predicted[:n], predicted[n:]
    covariance, within, beyond = np.cov(y, f, bias=True)[0, 1] / n, f.var() / n, rest.var() / n_pool
    tuning = covariance / (within + beyond)
    assert found.tuning == pytest.approx(tuning, rel=1e-9)
    assert found.value == pytest.approx(tuning * rest.mean() + (y - tuning * f).mean(), rel=1e-9)
    assert found.human == pytest.approx(y.mean())
    error = math.sqrt(n / (n - 2) * (((y - tuning * f).var() / n) + tuning**2 * beyond))
    assert found.interval is not None
    assert found.value is not None
    width = 2 * 1.972 * error / (found.value * (1 - found.value))
    ends = [math.log(end / (1 - end)) for end in (found.interval.low, found.interval.high)]
    assert ends[1] - ends[0] == pytest.approx(width, rel=0.01)


def test_constant_machine_changes_nothing_and_a_perfect_one_gives_the_pool() -> None:
    random = np.random.default_rng(1)
    values, is_labeled = (random.random(600) < 0.3).astype(float), random.random(600) < 0.3
    arguments = {"values": values, "weights": is_labeled.astype(float), "problems": np.arange(600)}
    constant = prediction_powered.estimate_with_predictions(
        prediction_powered.label_pool(**arguments, predicted=np.full(600, 0.4))
    )
    assert (constant.value, constant.reason) == (None, Reason.NO_DEPENDENCE)
    assert constant.human == pytest.approx(values[is_labeled].mean())
    perfect = prediction_powered.estimate_with_predictions(prediction_powered.label_pool(**arguments, predicted=values))
    assert perfect.value == pytest.approx(values.mean(), abs=0.002)
    assert perfect.saved_share is not None
    assert perfect.saved_share > 0.4


def test_errors_by_position_count_the_steps_that_the_machine_reached() -> None:
    machine, truth = np.array([1, 5, 3, 6]), np.array([3, 3, 3, 6])
    lengths, problems = np.array([5, 5, 6, 6]), np.arange(4)
    found = machine_agreement.estimate_errors(machine, truth, lengths, problems, ranges=((1, 2), (3, None)))
    assert [(row.n_hits, row.n_cases) for row in found.missed_by_position] == [(0, 0), (1, 3)]
    assert [(row.n_hits, row.n_cases) for row in found.false_alarms_by_position] == [(1, 8), (0, 6)]
    assert found.false_alarms.value == pytest.approx(1 / 14)


def test_machine_agreement_of_hand_counted_pairs() -> None:
    pairs = MachinePairs(
        np.array([2, 4, 4, 0]), np.array([2, 4, 3, 1]), np.zeros(4, np.bool_), np.full(4, 4), np.arange(4)
    )
    found = machine_agreement.estimate_first_errors(pairs)
    assert (found.exact.value, found.within_one.value, found.pairs) == (0.5, 0.75, 4)
    steps = machine_agreement.estimate_steps(np.array([1, 1, -1, -1]), np.array([1, 1, -1, 1]), np.arange(4))
    assert steps["pairwise_agreement"].value == 0.75
    # Two coders, four units: 1 - 7 · 2 / (2 · 5 · 3)
    assert steps["alpha_nominal"].value == pytest.approx(1 - 7 * 2 / 30)


def test_calibrated_probabilities_have_a_smaller_error_than_the_plain_estimate() -> None:
    random = np.random.default_rng(3)
    values, plain = [], []
    for _ in range(60):
        p = random.choice([0.4, 0.6, 0.8, 1.0], 400)
        is_right = random.random(400) < p
        found = reliability.estimate_reliability(confidences=p, is_right=is_right, problems=np.arange(400))
        values.append(found.calibration_error.value or 0.0)
        plain.append(calibration.expected_calibration_error(confidences=p, is_right=is_right, bins=10))
    assert np.mean(values) < np.mean(plain) / 1.4
    over = reliability.estimate_reliability(
        confidences=np.full(400, 0.9), is_right=np.arange(400) < 240, problems=np.arange(400)
    )
    assert over.calibration_error.value == pytest.approx(0.3, abs=0.002)
    assert over.brier.value == pytest.approx(0.6 * 0.01 + 0.4 * 0.81)
    assert [(each.low, each.n, each.right_share) for each in over.bins] == [(0.9, 400, 0.6)]


def evidence(agrees: list[bool], n_gold: int, n_shared: int) -> StratumEvidence:
    n = len(agrees)
    is_shared = np.arange(n_gold) < n_shared
    return StratumEvidence(np.array(agrees), np.arange(n), np.ones(n), is_shared, np.arange(n_gold))


def test_license_subtracts_the_blind_spot_that_people_share() -> None:
    sound, blind = evidence([True] * 400, 100, 0), evidence([True] * 400, 100, 12)
    found = machine_licenses.bound_strata({"sound": sound, "blind": blind}, promised=0.9)
    assert [found[key].keeps_promise for key in ("sound", "blind")] == [True, False]
    assert found["blind"].reason == Reason.BELOW_PROMISE
    thin = {1: evidence([True] * 20, 100, 0), 2: evidence([True] * 99, 5, 0)}
    few = machine_licenses.bound_strata(thin, promised=0.5)
    assert [few[key].reason for key in (1, 2)] == [Reason.FEW_BLIND, Reason.FEW_GOLD]


def test_effective_cases_are_the_problems_where_all_their_traces_agree() -> None:
    hits, problems = np.repeat(np.arange(50) < 40, 4), np.repeat(np.arange(50), 4)
    n = machine_licenses.count_effective_cases(hits, problems, np.ones(200))
    assert n == pytest.approx(49)  # 50 problems, less one for the mean
    bound = machine_licenses.bound_share(hits, problems, np.ones(200), tail=0.025, is_upper=False)
    assert bound == pytest.approx(stats.beta.ppf(0.025, 0.8 * 49, 0.2 * 49 + 1))


@pytest.mark.parametrize("p0", [0.8, 0.85, 0.9, 0.95, 0.99])
def test_drift_plan_catches_ten_points_within_sixty_tests(p0: float) -> None:
    plan = drift.plan_drift_test(p0)
    assert plan.power >= 0.9
    assert plan.false_alarms < 0.55
    random = np.random.default_rng(1)
    caught = [drift.find_alarm((random.random(60) < p0 - 0.1).tolist(), plan) is not None for _ in range(1500)]
    assert np.mean(caught) == pytest.approx(plan.power, abs=0.03)


def test_drift_alarm_needs_several_disagreements() -> None:
    plan = drift.plan_drift_test(0.95)
    assert drift.find_alarm([True] * 500, plan) is None
    assert drift.find_alarm([True] * 5 + [False] * 9, plan) == 5 + math.ceil(plan.threshold / plan.weight)


@pytest.mark.fault
def test_intervals_cover_the_truth_of_simulated_worlds() -> None:
    covered = machine_raters.measure_passport(sizes=(100,), worlds=200)
    assert len(covered) == 10
    # 200 worlds measure a coverage of .95 to ± .03; the mean of all figures is known better.
    assert {name: share for name, share in covered.items() if share < 0.91} == {}
    assert 0.93 <= np.mean(list(covered.values())) <= 0.97


@pytest.mark.fault
@pytest.mark.parametrize("judge", machine_raters.JUDGES)
@pytest.mark.parametrize("is_chosen", [False, True])
def test_powered_intervals_cover_the_truth_under_recorded_probabilities(judge: str, *, is_chosen: bool) -> None:
    found = machine_raters.measure_powered(judge, is_chosen=is_chosen, worlds=400)
    assert 0.925 <= found.covered <= 0.98
    assert found.auc == pytest.approx(0.8, abs=0.01)
    assert found.shorter >= (0.25 if judge == "sparing" and not is_chosen else 0.03)


@pytest.mark.fault
def test_licensed_strata_deliver_in_95_of_100_worlds() -> None:
    found = machine_raters.measure_licenses(worlds=200)
    assert found["delivers"] >= 0.95
    assert found["delivers_hostile"] >= 0.95
    assert found["licensed_per_world"] > found["worthy_per_world"] / 2


@pytest.mark.fault
@pytest.mark.parametrize("precision", [0.9, 0.95, 0.98])
def test_drift_is_caught_although_the_precision_was_only_measured(precision: float) -> None:
    found = machine_raters.measure_drift(precision, runs=1500)
    assert found.caught >= 0.9
    assert found.false_alarms <= 0.4
