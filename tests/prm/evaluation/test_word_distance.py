"""The number of words that differ between two texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prm.evaluation.word_distance import count_changed_words, split_words

_TEXTS = st.lists(st.sampled_from(["a", "b", "c", "+", "12"]), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("before", "after", "n"),
    [
        ("So x = 3.", "So x = 4.", 1),
        ("So x = 3.", "So,  x  =  3 .", 1),
        ("a b c", "b c d", 2),
        ("", "two words", 2),
        ("kitten sitting", "", 2),
    ],
)
def test_changed_words_are_counted(before: str, after: str, n: int) -> None:
    assert count_changed_words(before, after) == n


@given(_TEXTS, _TEXTS, _TEXTS)
@settings(max_examples=50, deadline=None)
def test_it_is_a_distance(first: str, second: str, third: str) -> None:
    between = count_changed_words(first, second)
    assert (between == 0) == (split_words(first) == split_words(second))
    assert between == count_changed_words(second, first)
    assert between <= max(len(split_words(first)), len(split_words(second)))
    assert between <= count_changed_words(first, third) + count_changed_words(third, second)
