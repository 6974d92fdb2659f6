"""The alternative annotator test: published figures, and the tests that it is made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stats import (
    alternative_annotator,
)
from stats.alternative_annotator import ItemAnswers
from stats.estimates import Reason
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
