"""When two writings of a text are the same."""

import hashlib

import pytest

from labeling.texts.normal import digest, normal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is $2 + 2$?", "what is 2+2"),
        ("ﬁnd  x²", "find x2"),
        ("Ｗｉｄｅ", "wide"),
        ("a\n\n b", "ab"),
    ],
)
def test_digest_overlooks_spelling(one: str, other: str) -> None:
    assert digest(one) == digest(other) == hashlib.sha256(normal(other).encode()).hexdigest()


def test_digest_sees_a_number() -> None:
    assert digest("What is 2 + 2?") != digest("What is 2 + 3?")
