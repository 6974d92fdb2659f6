"""Normalized texts."""

import hashlib

import pytest

from formats.near_duplicates import digest_normalized, normalize_text


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
