"""Answer checkers: what is extracted, what is equal, and which patterns are refused."""

import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import answers
from machines.answers import CheckerKind, InvalidPattern
from machines.expressions import is_same_expression


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So \boxed{1,200}.", "1,200"),
        (r"\boxed{1} and then \boxed {\frac{1}{2}}", r"\frac{1}{2}"),
        ("Natalia sold 72.\n#### 72", "72"),
        ("The answer is: $-3$.", "$-3$."),
        ("The final answer: 5\nmore", "5"),
        (r"never closed \boxed{1", None),
        ("It is 7.", None),
        ("", None),
    ],
)
def test_final_answer_is_found(text: str, answer: str | None) -> None:
    assert answers.find_answer(CheckerKind.EXACT, text) == answer


@pytest.mark.parametrize(
    ("kind", "answer", "reference", "is_same"),
    [
        *(
            ("number", "1,200", "1200.0", True),
            ("number", r"\frac{3}{4}", "0.75", True),
            ("number", "3/4", ".75", True),
        ),
        *(("number", r"-\$5", "-5", True), ("number", "12 apples", "12", True), ("number", "−2", "-2", True)),
        *(("number", "2 or 3", "2", False), ("number", "1e3", "1000", True), ("number", "0.3333333", "1/3", True)),
        *(("number", "0.33", "1/3", False), ("number", "1/0", "1", False), ("number", "9" * 500, "9", False)),
        *(("choice", "(B)", "b", True), ("choice", r"\text{B}", "B", True), ("choice", "B. cats", "(B)", True)),
        *(("choice", "Blue", "B", False), ("choice", "A", "B", False)),
        *(("exact", " a  b ", "a b", True), ("exact", "A", "a", False)),
    ],
)
def test_answers_are_compared(kind: str, answer: str, reference: str, is_same: bool) -> None:
    assert answers.is_same_answer(kind, answer, reference) is is_same


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        *((r"\frac{1}{2}", "0.5", True), (r"\frac12", "1/2", True), ("x+1", "1+x", True), ("xy", "y x", True)),
        *(("(x+1)^2", "x^2+2x+1", True), (r"\sin^2 x + \cos^2 x", "1", True), (r"2\sqrt{3}", r"\sqrt{12}", True)),
        *((r"\sqrt[3]{8}", "2", True), ("x = 5", "5", True), (r"10\pi", "31.415926535898", True), ("3!", "6", True)),
        *(("-x^2", "-(x^2)", True), ("2^{-1}", ".5", True), (r"90^\circ", "90", True), ("|-3|", "3", True)),
        *(("(1, 2)", "(1,2.0)", True), ("(1,2)", "[1,2)", False), ("(1,2)", "(2,1)", False), ("1,000", "1000", True)),
        *(("x^2", "2x", False), ("x", "y", False), ("1/0", "2/0", False), ("", "", False), ("\\frac", "x", False)),
        *(("9^{9^9}", "1", False), ("(" * 300 + "1", "1", False), ("x" * 1000, "x" * 1000, False)),
    ],
)
def test_expressions_are_compared(left: str, right: str, is_same: bool) -> None:
    assert is_same_expression(left, right) is is_same
    assert is_same_expression(right, left) is is_same


@settings(max_examples=50)
@given(st.text(alphabet="0123456789+-*/^(){}\\fracsqtx,.|! =_", max_size=80))
def test_no_text_breaks_the_comparison(text: str) -> None:
    for kind in (CheckerKind.NUMBER, CheckerKind.EXPRESSION, CheckerKind.CHOICE):
        answers.is_same_answer(kind, text, "1")


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(?:a|ab)*(b)", "(x)(y)", "x", "(?=a)(b)", r"(a)\1", "(a", "(.*).*.*", "(" * 201]
)
def test_pattern_that_can_hang_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        answers.validate_pattern(pattern)


@pytest.mark.parametrize("pattern", [r"Answer: (\w+)", r"(.*)x.*y$", r"=\s*(\d{1,9})"])
def test_permitted_pattern_is_fast_on_hostile_text(pattern: str) -> None:
    answers.validate_pattern(pattern)
    text = "".join(random.Random(1).choices("xy=1 ", k=100_000))
    started = time.process_time()
    answers.find_answer(CheckerKind.REGEX, text, pattern)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("kind", ["number", "regex"])
def test_checker_agrees_with_the_labels_of_a_public_dataset(kind: str, shared_data: Path) -> None:
    """OpenAI's example solutions for GSM8K: four models, 150 problems, each labeled right or wrong."""
    pattern = answers.validate_pattern(r"A: ([^\n]+)")
    lines = (shared_data / "gsm8k" / "example_model_solutions.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    n_same = n = 0
    for row in rows:
        reference = answers.find_answer("regex", row["ground_truth"], pattern) or ""
        for solution in (value for value in row.values() if isinstance(value, dict)):
            answer = answers.find_answer("regex", solution["solution"], pattern) or ""
            n += 1
            n_same += answers.is_same_answer(kind, answer, reference) == solution["is_correct"]
    assert (n_same, n) == (600, 600)


def test_pattern_takes_the_last_match() -> None:
    assert answers.find_answer(CheckerKind.REGEX, "Result=a Result=b", r"Result=(\w)") == "b"
