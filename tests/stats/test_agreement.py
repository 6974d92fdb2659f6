"""Agreement: every statistic on the ten published tables, properties of the estimates, and first errors by counting."""

import ast
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats import agreement, first_error_reports, rating_patterns
from stats.arrays import Floats
from stats.estimates import Reason
from stats.first_error_reports import ReportArrays
from stats.rating_patterns import PairSums
from tests.stats import published_tables
from tests.stats.strategies import HOLE, matrices, matrix_patterns

STATISTICS: dict[str, Callable[[PairSums], Floats]] = {
    "alpha_nominal": agreement.alpha_nominal,
    "alpha_ordinal": agreement.alpha_ordinal,
    "alpha_interval": agreement.alpha_interval,
    "alpha_ratio": agreement.alpha_ratio,
    "gwet_AC1": agreement.gwet_ac1,
    "gwet_AC2_linear": lambda s: agreement.gwet_ac2(s, agreement.linear_weights(s.values)),
    "gwet_AC2_quadratic": lambda s: agreement.gwet_ac2(s, agreement.quadratic_weights(s.values)),
    "gwet_AC2_ordinal": lambda s: agreement.gwet_ac2(s, agreement.ordinal_weights(s.values)),
    "brennan_prediger": agreement.brennan_prediger_kappa,
    "pairwise_pct": agreement.pairwise_agreement,
    "fleiss_kappa": agreement.fleiss_kappa,
}
COHEN = {
    "cohen_kappa": lambda values: np.eye(len(values)),
    "cohen_linear": agreement.linear_weights,
    "cohen_quadratic": agreement.quadratic_weights,
}


def test_statistics_equal_the_published_values(shared_data: Path) -> None:
    tables = published_tables.load_tables(shared_data)
    assert len(tables) == 10
    for table in tables:
        total = published_tables.sum_all_pairs(published_tables.table_patterns(table))
        names = table["expect"].keys() - COHEN.keys() - {"coincidence"}  # tested separately
        assert len(names) >= 9
        for name in names:
            assert float(STATISTICS[name](total)) == pytest.approx(table["expect"][name], abs=5.1e-7), (
                table["name"],
                name,
            )


def test_kappa_equals_the_published_values(shared_data: Path) -> None:
    checked = 0
    for table in published_tables.load_tables(shared_data):
        for name in COHEN.keys() & table["expect"].keys():
            counts = np.array(ast.literal_eval(table["note"].removeprefix("two-rater table ")), dtype=float)
            found = agreement.cohen_kappa(counts, COHEN[name](table["values"]))
            assert float(found) == pytest.approx(table["expect"][name], abs=5.1e-7), (table["name"], name)
            checked += 1
    assert checked == 18


def test_coincidences_equal_the_published_matrix(shared_data: Path) -> None:
    table = published_tables.load_tables(shared_data)[0]
    total = published_tables.sum_all_pairs(published_tables.table_patterns(table))
    assert total.coincidences == pytest.approx(np.array(table["expect"]["coincidence"]))
    assert float(total.coincidences.sum()) == pytest.approx(40)


def test_pairwise_is_not_the_mean_over_units(shared_data: Path) -> None:
    total = published_tables.sum_all_pairs(
        published_tables.table_patterns(published_tables.load_tables(shared_data)[0])
    )
    mean = agreement.observed_agreement(total, np.eye(total.k))
    assert (round(float(agreement.pairwise_agreement(total)), 6), round(float(mean), 6)) == (0.781818, 0.818182)


Matrix = npt.NDArray[np.int64]
_LEAN = settings(max_examples=40, deadline=None)


def values(
    matrix: Matrix, *, compressed: bool = False, scale: tuple[float, ...] = rating_patterns.PROJECT_SCALE
) -> dict[str, Any]:
    made = matrix_patterns(matrix, values=scale)
    found = agreement.estimate_step_statistics(rating_patterns.merge_equal_patterns(made) if compressed else made)
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
    more = agreement.estimate_step_statistics(matrix_patterns(np.hstack([matrix, lone])))
    for name, estimate in agreement.estimate_step_statistics(matrix_patterns(matrix)).items():
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
    """The two used values are then neighbors, and still two values."""
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
    """Alpha corrects for small samples and changes; means over units do not."""
    once, twice = values(matrix), values(np.hstack([matrix, matrix]))
    for name in ("gwet_ac1", "gwet_ac2_quadratic", "fleiss_kappa", "pairwise_agreement"):
        assert once[name] == (twice[name] if isinstance(once[name], Reason) else pytest.approx(twice[name]))


def test_units_rated_once_give_a_reason() -> None:
    found = agreement.estimate_step_statistics(matrix_patterns(np.array([[0, HOLE, 2], [HOLE, 1, HOLE]])))
    assert {estimate.reason for estimate in found.values()} == {Reason.NO_PAIRS}
    assert found["alpha_nominal"].counts.units == 3
    assert found["alpha_nominal"].counts.pairable == 0


def test_no_ratings_give_a_reason() -> None:
    found = agreement.estimate_step_statistics(rating_patterns.patterns_from_rows([]))
    assert {estimate.reason for estimate in found.values()} == {Reason.NO_PAIRS}


def test_constant_disagreement_is_below_chance() -> None:
    found = values(np.array([[0, 2] * 10, [2, 0] * 10]))
    assert found["pairwise_agreement"] == 0
    assert found["alpha_nominal"] == pytest.approx(-1 + 2 / 40)


def test_label_shares_count_every_rating() -> None:
    shares = agreement.label_shares(matrix_patterns(np.array([[0, 2, 2], [HOLE, 2, 1]])))
    assert shares == {-1.0: 0.2, 0.0: 0.2, 1.0: 0.6}


# Table 1 of K. Krippendorff (2011): four observers, twelve units, categories 1 to 5; a dot for no rating.
PUBLISHED = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def test_each_name_is_its_statistic() -> None:
    rated = [(unit, int(label) - 1) for said in PUBLISHED for unit, label in enumerate(said) if label != "."]
    units, labels = np.array(rated).T
    found = agreement.estimate_step_statistics(
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


Row = tuple[int, int, int, bool]  # trace, rater, end, censored


def made(rows: list[Row], lengths: list[int], problems: list[int] | None = None) -> ReportArrays:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    traces, raters, ends = (np.array(column, dtype=np.int64) for column in columns[:3])
    n = len(lengths)
    return ReportArrays(
        traces=traces,
        raters=raters,
        ends=ends,
        is_censored=np.array(columns[3], dtype=np.bool_),
        lengths=np.array(lengths, dtype=np.int64),
        problems=np.arange(n) if problems is None else np.array(problems),
        domains=np.zeros(n, dtype=np.int64),
    )


@st.composite
def some_reports(draw: Any) -> tuple[list[Row], list[int]]:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))
    rows = [
        (trace, rater, draw(st.integers(0, lengths[trace])), draw(st.integers(0, 4)) == 0)
        for trace in range(len(lengths))
        for rater in range(draw(st.integers(0, 4)))
    ]
    return rows, lengths


def pairs_one_by_one(rows: list[Row], lengths: list[int]) -> tuple[int, int, int]:
    exact = near = n = 0
    for first, second in itertools.combinations(rows, 2):
        if first[0] != second[0] or first[3] or second[3]:
            continue
        none = lengths[first[0]]
        n += 1
        exact += first[2] == second[2]
        beside = abs(first[2] - second[2]) == 1 and none not in (first[2], second[2])
        near += first[2] == second[2] or beside
    return exact, near, n


@settings(max_examples=80, deadline=None)
@given(some_reports())
def test_agreement_equals_counting_pairs_one_by_one(case: tuple[list[Row], list[int]]) -> None:
    rows, lengths = case
    exact, near, n = pairs_one_by_one(rows, lengths)
    found = agreement.estimate_first_error_agreement(made(rows, lengths))
    assert found.pairs == n
    if n:
        assert found.exact.value == pytest.approx(exact / n)
        assert found.within_one.value == pytest.approx(near / n)
    else:
        assert (found.exact.reason, found.within_one.reason) == (Reason.NO_PAIRS, Reason.NO_PAIRS)


@settings(max_examples=40, deadline=None)
@given(some_reports(), st.randoms(use_true_random=False))
def test_order_of_reports_and_names_of_raters_change_nothing(case: tuple[list[Row], list[int]], random: Any) -> None:
    rows, lengths = case
    other = [(trace, 9 - rater, end, censored) for trace, rater, end, censored in rows]
    random.shuffle(other)
    assert agreement.estimate_first_error_agreement(made(rows, lengths)) == agreement.estimate_first_error_agreement(
        made(other, lengths)
    )


def test_censored_report_never_counts_as_no_error() -> None:
    rows = [(0, 0, 5, False), (0, 1, 3, True), (1, 0, 2, False), (1, 1, 2, False)]
    found = agreement.estimate_first_error_agreement(made(rows, [5, 5]))
    assert (found.pairs, found.pairs_with_a_censored_report) == (1, 1)
    assert found.exact.value == 1.0
    assert found.has_error_kappa.reason == Reason.NO_VARIATION
    assert found.has_error_kappa.counts.pairable == 1


def test_last_step_and_no_error_are_not_neighbors() -> None:
    found = agreement.estimate_first_error_agreement(made([(0, 0, 4, False), (0, 1, 5, False)], [5]))
    assert (found.exact.value, found.within_one.value) == (0.0, 0.0)


def test_has_error_kappa_is_scotts_pi_for_pairs() -> None:
    """Both say error on 40, both none on 45, they differ on 15: the first table of Feinstein and Cicchetti."""
    says = [(0, 1)] * 40 + [(5, 5)] * 45 + [(0, 5)] * 9 + [(5, 2)] * 6
    rows = [(trace, rater, end, False) for trace, ends in enumerate(says) for rater, end in enumerate(ends)]
    found = agreement.estimate_first_error_agreement(made(rows, [5] * 100)).has_error_kappa
    n, p = 200, (80 + 15) / 200
    assert found.value == pytest.approx((0.85 - (p * p + (1 - p) ** 2)) / (1 - (p * p + (1 - p) ** 2)))
    assert 1 - (n - 1) / n * (1 - float(found.value or 0)) == pytest.approx(0.700752, abs=1e-6)  # alpha's correction


def test_has_error_kappa_has_an_interval_by_problem() -> None:
    random = np.random.default_rng(3)
    truth = random.integers(0, 6, 120)
    rows = [
        (trace, rater, int(truth[trace] if random.random() < 0.8 else random.integers(0, 6)), False)
        for trace in range(120)
        for rater in range(2)
    ]
    found = agreement.estimate_first_error_agreement(
        made(rows, [5] * 120, problems=[trace // 4 for trace in range(120)])
    )
    for estimate in (found.exact, found.within_one, found.has_error_kappa):
        assert estimate.interval is not None
        assert estimate.bootstrap is not None
        assert estimate.counts.problems == 30


def test_no_reports_give_a_reason() -> None:
    found = agreement.estimate_first_error_agreement(made([], []))
    assert found.exact.reason == found.has_error_kappa.reason == Reason.NO_PAIRS


def test_of_positions_reads_the_benchmark_way_of_writing() -> None:
    reports = first_error_reports.reports_from_positions(
        traces=np.array([0, 0, 1]), raters=np.array([0, 1, 0]), positions=np.array([-1, 2, 0]), lengths=np.array([4, 3])
    )
    assert reports.ends.tolist() == [4, 2, 0]
    assert reports.says_error.tolist() == [False, True, True]
    assert reports.says_none.tolist() == [True, False, False]


@pytest.mark.parametrize("end", [-1, 6])
def test_reports_refuse_an_end_outside_the_trace(end: int) -> None:
    with pytest.raises(ValueError, match="end"):
        made([(0, 0, end, False)], [5])


def test_reports_refuse_columns_that_do_not_fit() -> None:
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="reports"):
        ReportArrays(np.array([0]), none, none, none.astype(np.bool_), np.array([3]), np.array([0]), np.array([0]))


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("a", "a", 0.0),
        ("a", "b", 1.0),
        ("a b", "a b c d", 1 - 2 / 3 * 2 / 4),
        ("a b", "b c", 1 - 1 / 3 * 1 / 3),
        ("a b c", "a", 1 - 2 / 3 * 1 / 3),
    ],
)
def test_masi_distance_is_as_in_the_paper(one: str, other: str, distance: float) -> None:
    distances = agreement.masi_distances([frozenset(one.split()), frozenset(other.split())])
    assert distances.tolist() == [[0.0, pytest.approx(distance)], [pytest.approx(distance), 0.0]]
