"""Texts split into steps."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import segmenters

TEXTS = st.text(st.sampled_from("aA1. \n\t\r)?!$\\:é。”"), max_size=40) | st.lists(
    st.sampled_from(
        ["Step 1: a", "## Step 2: b", "1. x", "2) y", "\n", "\n\n", " ", "So. Then", "step 3", "第二步", "好。", "\n  "]
    )
    | st.sampled_from(["```", "```py", "$$", "\\[", "\\]", "\\begin{a}", "\\end{a}", "\\end{b}"]),
    max_size=12,
).map("".join)

CODE = "We write:\n\n```python\ndef f(x):\n\n    return x\n```\n\nIt works.\n\nDone."
FORMULA = "We have\n\\[\nx\n= 1.\n\\]\nso done.\n$$\na\n$$\nEnd."
CHINESE = "设速度为 $x$。则有 $3x = 6$，所以 $x = 2$。他说：“好。”答案是 2！"


NAMES = (*segmenters.SEGMENTER_NAMES, *(f"separator 1: {separator}" for separator in (" ", r"\n", "1", "$$", r"\\n")))


@given(TEXTS, st.sampled_from(NAMES))
def test_cut_loses_no_text(text: str, segmenter: str) -> None:
    pieces = segmenters.cut_text(text, segmenter=segmenter)
    assert "".join(piece.separator + piece.text for piece in pieces) == text
    assert len(pieces) == 1 or all(piece.text.strip() for piece in pieces)


@pytest.mark.parametrize(
    ("segmenter", "text", "expected"),
    [
        ("lines 2", "a\nb\n\n c\n", ["a", "b", " c\n"]),
        ("lines 2", "if a:\n    b\n\n  \n    c", ["if a:", "    b", "    c"]),
        ("lines 2", FORMULA, ["We have", "\\[\nx\n= 1.\n\\]", "so done.", "$$\na\n$$", "End."]),
        ("lines 2", "a\n```\nb\nc", ["a", "```", "b", "c"]),  # a fence that is never closed is not code
        ("blank lines 2", "a\nb\n\nc\n \n\nd", ["a\nb", "c", "d"]),
        ("blank lines 2", CODE, ["We write:", CODE.split("\n\n", 1)[1].rsplit("\n\n", 2)[0], "It works.", "Done."]),
        ("blank lines 2", "\\begin{align}\na\n\nb\n\\end{align}\n\nc", ["\\begin{align}\na\n\nb\n\\end{align}", "c"]),
        ("sentences 2", "It is 3.5. So we add $x$. Done!", ["It is 3.5.", "So we add $x$.", "Done!"]),
        (
            "sentences 2",
            "Ask Mr. Fox, i.e. Bob. He said “No.” Then Fig. 2.",
            ["Ask Mr. Fox, i.e. Bob.", "He said “No.”", "Then Fig. 2."],
        ),
        ("sentences 2", CHINESE, ["设速度为 $x$。", "则有 $3x = 6$，所以 $x = 2$。", "他说：“好。”", "答案是 2！"]),
        ("numbered list 2", "1. a\n b\n2. c\n10) d", ["1. a\n b", "2. c", "10) d"]),
        ("step k 2", "Step 1: a\nmore\n\nStep 2: b", ["Step 1: a\nmore", "Step 2: b"]),
        (
            "step k 2",
            "So.\n## Step 1: a\n\n**Step 2**: b\nStep3 c",
            ["So.", "## Step 1: a", "**Step 2**: b", "Step3 c"],
        ),
        ("step k 2", "第一步：甲\n乙\n步骤2：丙", ["第一步：甲\n乙", "步骤2：丙"]),
        ("headings 1", "So.\n# A\na\n\n### B\nb\n#c", ["So.", "# A\na", "### B\nb\n#c"]),
        ("separator 1: ###", "a###b###", ["a", "b###"]),
        (r"separator 1: \n-\n", "a\n-\nb - c\n-\n-\n", ["a", "b - c", "-\n"]),
        (r"separator 1: \\n", "a\\nb\nc", ["a", "b\nc"]),
        ("separator 1: .*", "a.b.*c", ["a.b", "c"]),
        ("separator 1: \\n", "a\n```\nb\nc\n```\nd", ["a", "```\nb\nc\n```", "d"]),
        ("lines 2", "", [""]),
        ("lines 2", "\n \n", ["\n \n"]),
    ],
)
def test_cut_splits_at_the_expected_places(segmenter: str, text: str, expected: list[str]) -> None:
    assert [piece.text for piece in segmenters.cut_text(text, segmenter=segmenter)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Step 1: a\nStep 2: b", "step k 2"),
        ("### Step 1: a\n\nb\n\n### Step 2: b\n\nc", "step k 2"),
        ("第一步：甲\n第二步：乙", "step k 2"),
        ("First:\n\n1. a\n\n   b\n\n2. c\n\n3. d", "numbered list 2"),
        ("1. a\n2. b\n\nc\n\n1. d", "blank lines 2"),
        ("a\n\nb\n\nc", "blank lines 2"),
        (CODE, "blank lines 2"),
        ("a\nb", "lines 2"),
        (FORMULA, "lines 2"),
        ("One. Two.", "sentences 2"),
        (CHINESE, "sentences 2"),
    ],
)
def test_choose_returns_the_segmenter_that_fits(text: str, expected: str) -> None:
    assert segmenters.choose_segmenter(text) == expected


@pytest.mark.parametrize("unit", [" ", "\n", " \n", "\\[", "$$", "```\n", "\\begin{a}", "1. ", "。", ". ", "Step 1 "])
def test_cut_runs_in_linear_time(unit: str) -> None:
    """A backtracking pattern would take minutes on a long run of one unit."""
    text = "a" + unit * (20_000 // len(unit)) + "b"
    began = time.process_time()
    for segmenter in NAMES:
        assert "".join(sum(segmenters.cut_text(text, segmenter=segmenter), ())) == text
    segmenters.choose_segmenter(text)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("name", ["by mood", "separator 1: ", f"separator 1: {'-' * 41}", "lines"])
def test_unknown_segmenters_are_refused(name: str) -> None:
    with pytest.raises(segmenters.UnknownSegmenter):
        segmenters.check_segmenter(name)
    for known in ("", segmenters.BEST_FIT, *NAMES):
        segmenters.check_segmenter(known)
