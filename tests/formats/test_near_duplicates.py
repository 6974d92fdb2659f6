"""Near-duplicate texts."""

import hashlib
import random
from collections.abc import Hashable, Iterable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.near_duplicates import SLOTS, TextCollection, compute_signature, digest_normalized, normalize_text

K = TypeVar("K", bound=Hashable)
WORDS = [f"word{number}" for number in range(500)]


def words(chance: random.Random, n: int) -> list[str]:
    return chance.choices(WORDS, k=n)


def groups(texts: Iterable[tuple[K, str]]) -> dict[K, K]:
    collection: TextCollection[K] = TextCollection()
    collection.add(dict(texts))
    return collection.groups()


def runs(text: list[str]) -> set[tuple[str, ...]]:
    return {tuple(text[at : at + 3]) for at in range(len(text) - 2)}


def test_similarity_estimates_the_share_of_common_runs() -> None:
    """The mean error over many pairs is that of 64 independent hashes."""
    chance = random.Random(7)
    errors = []
    for _ in range(300):
        one = words(chance, 60)
        other = one[: (n := chance.randrange(5, 60))] + words(chance, 60 - n)
        jaccard = len(runs(one) & runs(other)) / len(runs(one) | runs(other))
        agreeing = compute_signature(" ".join(one)) == compute_signature(" ".join(other))
        errors.append(agreeing.sum() / SLOTS - jaccard)
    assert abs(sum(errors) / len(errors)) < 0.01
    assert (sum(error**2 for error in errors) / len(errors)) ** 0.5 < 0.0625


def test_groups_find_every_near_copy_and_nothing_else() -> None:
    chance = random.Random(3)
    texts = {}
    for number in range(400):
        text = words(chance, 80)
        texts[number, "text"] = " ".join(text)
        text[79] = "changed"
        texts[number, "copy"] = " ".join(text).upper()
    found = groups(texts.items())
    assert set(found.values()) == {(number, "text") for number in range(400)}
    assert all(found[number, "copy"] == (number, "text") for number in range(400))


def test_groups_are_transitive() -> None:
    text = words(random.Random(5), 60)
    second, third = [*text], [*text]
    second[10] = "x"
    third[10], third[45] = "x", "y"
    found = groups([("a", " ".join(text)), ("b", " ".join(second)), ("c", " ".join(third))])
    assert found == {"a": "a", "b": "a", "c": "a"}


@pytest.mark.fault
def test_groups_of_many_equal_texts_are_fast() -> None:
    """Comparing all pairs would take half a billion comparisons."""
    found = groups((number, "the same text for all of them") for number in range(30_000))
    assert set(found.values()) == {0}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=8))
def test_groups_has_every_text_and_equal_texts_together(texts: list[str]) -> None:
    found = groups(enumerate(texts))
    assert list(found) == list(range(len(texts)))
    for number, text in enumerate(texts):
        assert found[number] <= number
        assert found[number] == found[texts.index(text)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is $2 + 2$?", "what is 2+2"),
        ("ﬁnd  x²", "find x2"),
        ("Ｗｉｄｅ", "wide"),
        ("a\n\n b", "ab"),
    ],
)
def test_digest_ignores_case_spacing_and_marks(one: str, other: str) -> None:
    assert (
        digest_normalized(one) == digest_normalized(other) == hashlib.sha256(normalize_text(other).encode()).hexdigest()
    )


def test_digest_depends_on_numbers() -> None:
    assert digest_normalized("What is 2 + 2?") != digest_normalized("What is 2 + 3?")
