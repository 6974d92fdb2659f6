"""Properties of the step statistics: invariances, ranges, and reasons for missing values."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats import rating_patterns, step_agreement
from stats.estimates import Reason
from tests.stats.strategies import HOLE, matrices, matrix_patterns

Matrix = npt.NDArray[np.int64]
_LEAN = settings(max_examples=40, deadline=None)


def values(
    matrix: Matrix, *, compressed: bool = False, scale: tuple[float, ...] = rating_patterns.PROJECT_SCALE
) -> dict[str, Any]:
    made = matrix_patterns(matrix, values=scale)
    found = step_agreement.estimate_step_statistics(rating_patterns.merge_equal_patterns(made) if compressed else made)
    return {name: estimate.value if estimate.reason is None else estimate.reason for name, estimate in found.items()}


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert second[name] == (value if isinstance(value, Reason) else pytest.approx(value, abs=1e-9)), name


@_LEAN
@given(matrices(), st.randoms(use_true_random=False))
def test_order_of_raters_and_units_changes_nothing(matrix: Matrix, random: Any) -> None:
    raters, units = list(range(matrix.shape[0])), list(range(matrix.shape[1]))
    random.shuffle(raters)
    random.shuffle(units)
    assert_same(values(matrix), values(matrix[raters][:, units]))


@_LEAN
@given(matrices())
def test_ratings_of_a_unit_can_be_permuted(matrix: Matrix) -> None:
    """It does not matter which rater gave a rating."""
    assert_same(values(matrix), values(np.sort(matrix, axis=0)))


@_LEAN
@given(matrices())
def test_merged_patterns_give_the_same_values(matrix: Matrix) -> None:
    assert_same(values(matrix), values(matrix, compressed=True))


@_LEAN
@given(matrices(), st.integers(0, 2))
def test_unit_with_one_rating_changes_no_alpha(matrix: Matrix, label: int) -> None:
    lone = np.full((matrix.shape[0], 1), HOLE)
    lone[0] = label
    more = step_agreement.estimate_step_statistics(matrix_patterns(np.hstack([matrix, lone])))
    for name, estimate in step_agreement.estimate_step_statistics(matrix_patterns(matrix)).items():
        if not name.startswith("gwet"):  # Gwet's chance term reads single ratings too
            assert (estimate.value, estimate.reason) == (more[name].value, more[name].reason)
            assert estimate.interval == more[name].interval


@_LEAN
@given(st.lists(st.integers(0, 2), min_size=2, max_size=12), st.integers(2, 4))
def test_perfect_agreement_is_one_or_has_no_variation(labels: list[int], raters: int) -> None:
    found = values(np.tile(labels, (raters, 1)))
    varied = len(set(labels)) > 1
    for name, value in found.items():
        always = name.startswith("gwet") or name == "pairwise_agreement"
        assert value == (pytest.approx(1.0) if varied or always else Reason.NO_VARIATION), name


@_LEAN
@given(matrices())
def test_values_stay_in_their_range(matrix: Matrix) -> None:
    for name, value in values(matrix).items():
        lowest = {"pairwise_agreement": 0.0, "gwet_ac2_quadratic": -2.0}.get(name, -1.0)
        assert isinstance(value, Reason) or lowest - 1e-9 <= value <= 1 + 1e-9, name


@_LEAN
@given(matrices(), st.sampled_from([1e-300, 1e-12, 1e-6, 1e6, 1e200, 1.7e308]))
def test_unit_in_which_labels_are_written_changes_nothing(matrix: Matrix, unit: float) -> None:
    assert_same(values(matrix), values(matrix, scale=(-unit, 0.0, unit)))


@_LEAN
@given(matrices(k=2))
def test_unused_distant_value_changes_no_alpha(matrix: Matrix) -> None:
    """The two that were used are then next to each other, and still two."""
    near, far = values(matrix, scale=(0.0, 1.0)), values(matrix, scale=(0.0, 1.0, 1e9))
    for name in ("alpha_nominal", "alpha_ordinal", "alpha_interval"):
        assert_same({name: near[name]}, {name: far[name]})


@_LEAN
@given(matrices(), st.permutations(range(3)))
def test_renaming_categories_changes_nothing_that_knows_no_order(matrix: Matrix, names: list[int]) -> None:
    renamed = np.where(matrix == HOLE, HOLE, np.array(names)[matrix])
    first, second = values(matrix), values(renamed)
    for name in ("alpha_nominal", "gwet_ac1", "fleiss_kappa", "pairwise_agreement"):
        assert_same({name: first[name]}, {name: second[name]})


@_LEAN
@given(matrices(), st.floats(0.1, 10), st.floats(0.1, 10))
def test_distances_do_not_change_ordinal_alpha(matrix: Matrix, below: float, above: float) -> None:
    plain, stretched = values(matrix), values(matrix, scale=(-below, 0.0, above))
    assert_same({"alpha_ordinal": plain["alpha_ordinal"]}, {"alpha_ordinal": stretched["alpha_ordinal"]})


@_LEAN
@given(matrices())
def test_doubling_every_unit_changes_no_percentage(matrix: Matrix) -> None:
    """Alpha corrects for small samples and moves; what is a mean over units stays."""
    once, twice = values(matrix), values(np.hstack([matrix, matrix]))
    for name in ("gwet_ac1", "gwet_ac2_quadratic", "fleiss_kappa", "pairwise_agreement"):
        assert once[name] == (twice[name] if isinstance(once[name], Reason) else pytest.approx(twice[name]))


def test_units_rated_once_give_a_reason() -> None:
    found = step_agreement.estimate_step_statistics(matrix_patterns(np.array([[0, HOLE, 2], [HOLE, 1, HOLE]])))
    assert {estimate.reason for estimate in found.values()} == {Reason.NO_PAIRS}
    assert found["alpha_nominal"].counts.units == 3
    assert found["alpha_nominal"].counts.pairable == 0


def test_no_ratings_give_a_reason() -> None:
    found = step_agreement.estimate_step_statistics(rating_patterns.patterns_from_rows([]))
    assert {estimate.reason for estimate in found.values()} == {Reason.NO_PAIRS}


def test_constant_disagreement_is_below_chance() -> None:
    found = values(np.array([[0, 2] * 10, [2, 0] * 10]))
    assert found["pairwise_agreement"] == 0
    assert found["alpha_nominal"] == pytest.approx(-1 + 2 / 40)


def test_label_shares_count_every_rating() -> None:
    shares = step_agreement.label_shares(matrix_patterns(np.array([[0, 2, 2], [HOLE, 2, 1]])))
    assert shares == {-1.0: 0.2, 0.0: 0.2, 1.0: 0.6}


# Table 1 of K. Krippendorff (2011): four observers, twelve units, categories 1 to 5; a dot for no rating.
PUBLISHED = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def test_each_name_is_its_statistic() -> None:
    rated = [(unit, int(label) - 1) for said in PUBLISHED for unit, label in enumerate(said) if label != "."]
    units, labels = np.array(rated).T
    found = step_agreement.estimate_step_statistics(
        rating_patterns.count_patterns(units=units, labels=labels, values=(1, 2, 3, 4, 5))
    )
    assert {name: round(estimate.value or 0, 6) for name, estimate in found.items()} == {
        "alpha_nominal": 0.743421,
        "alpha_ordinal": 0.815388,
        "alpha_interval": 0.849107,
        "gwet_ac1": 0.775444,
        "gwet_ac2_quadratic": 0.914001,
        "fleiss_kappa": 0.762483,
        "pairwise_agreement": 0.781818,
    }
