"""Texts cut into steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeling.importing import segmenters

TEXTS = st.text(st.sampled_from("aA1. \n\t\r)?!$\\:é"), max_size=40) | st.lists(
    st.sampled_from(["Step 1: a", "Step 2: b", "1. x", "2) y", "\n", "\n\n", " ", "So. Then", "step 3"]), max_size=8
).map("".join)


@given(TEXTS, st.sampled_from(segmenters.NAMES))
def test_cut_loses_nothing(text: str, segmenter: str) -> None:
    pieces = segmenters.cut(text, segmenter=segmenter)
    assert segmenters.join(pieces) == text
    assert len(pieces) == 1 or all(piece.text.strip() for piece in pieces)


@pytest.mark.parametrize(
    ("segmenter", "text", "expected"),
    [
        ("lines 1", "a\nb\n\n c\n", ["a", "b", "c\n"]),
        ("blank lines 1", "a\nb\n\nc\n \n\nd", ["a\nb", "c", "d"]),
        ("sentences 1", "It is 3.5. So we add $x$. Done!", ["It is 3.5.", "So we add $x$.", "Done!"]),
        ("numbered list 1", "1. a\n b\n2. c\n10) d", ["1. a\n b", "2. c", "10) d"]),
        ("step k 1", "Step 1: a\nmore\n\nStep 2: b", ["Step 1: a\nmore", "Step 2: b"]),
        ("lines 1", "", [""]),
        ("lines 1", "\n \n", ["\n \n"]),
    ],
)
def test_cut_gives_the_steps_that_a_reader_expects(segmenter: str, text: str, expected: list[str]) -> None:
    assert [piece.text for piece in segmenters.cut(text, segmenter=segmenter)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Step 1: a\nStep 2: b", "step k 1"),
        ("a\n\nb\n\nc", "blank lines 1"),
        ("a\nb", "lines 1"),
        ("One. Two.", "sentences 1"),
    ],
)
def test_choose_takes_the_segmenter_that_fits(text: str, expected: str) -> None:
    assert segmenters.choose(text) == expected
