"""Titles of texts, and LaTeX as plain characters."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formats import titles


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        ("6y^3+5y^2-16y+8", "6y³ + 5y² − 16y + 8"),
        (r"\frac{1}{2}", "1/2"),
        (r"\frac12", "1/2"),
        (r"\dfrac{x+1}{y}", "(x + 1)/y"),
        (r"\frac{5}{2}c", "(5/2)c"),
        (r"\sqrt{x+3}", "√(x + 3)"),
        (r"\sqrt[3]{8}", "∛8"),
        (r"0 \le n\le180", "0 ≤ n ≤ 180"),
        (r"\cos n^\circ", "cos n°"),
        (r"\sin^2 x", "sin² x"),
        (r"\log_2 256", "log₂ 256"),
        (r"2\sin x", "2 sin x"),
        (r"x_1,x_2,\dots", "x₁, x₂, …"),
        ("a_{max}", "a_max"),
        ("e^{x^2+1}", "e^(x² + 1)"),
        (r"\begin{pmatrix} 1 \\ -1 \end{pmatrix}", "(1; −1)"),
        (r"n \equiv 3 \pmod{5}", "n ≡ 3 (mod 5)"),
        (r"\binom{n}{k} \in \mathbb{N}", "C(n, k) ∈ ℕ"),
        (r"\boxed{\text{no real root}}", "no real root"),
        (r"24,\!000", "24,000"),
        (r"\left(P(2)\right)^2", "(P(2))²"),
        (r"\unheardof{x}", "unheardof x"),
        (r"\frac{1}{", "1/"),
        ("}", ""),
    ],
)
def test_latex_becomes_plain_characters(tex: str, expected: str) -> None:
    assert titles.latex_to_text(tex) == expected


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("What is $x^2$\nfor\n  \\(x = 3\\)?", "What is x² for x = 3?"),
        ("It costs $5 and $6, or \\$7.", "It costs $5 and $6, or $7."),
        (r"roots of \[x^2 = 1\]have", "roots of x² = 1 have"),
        (r"Solve \begin{align*} a &= 1 \\ b &= 2 \end{align*}.", "Solve a = 1; b = 2."),
        ("The ring [asy] draw(unitcircle); [/asy] is shaded.", "The ring is shaded."),
        ("Call `f()` and **say so**.", "Call f() and say so."),
        ("The sum \\boxed{\\frac{1}{\\sqrt{2}}}.", "The sum 1/√2."),
    ],
)
def test_title_is_one_line_without_source(text: str, title: str) -> None:
    assert titles.make_title(text) == title


def test_title_ends_at_a_word_and_converts_a_formula_that_was_cut_off() -> None:
    assert titles.make_title("word " * 60, 23) == "word word word word…"
    long = r"Sum $$" + r"\frac{1}{2} + " * 300 + "1$$"
    assert titles.make_title(long, 20) == "Sum 1/2 + 1/2 +…"


@example("\\")
@example(r"\text{a\ b\}")
@given(st.text(st.sampled_from("\\{}$^_&[]() \nfracsqt12x+-=,.") | st.characters(codec="utf-8"), max_size=300))
def test_title_of_any_text_is_one_short_line(text: str) -> None:
    title = titles.make_title(text, 80)
    assert len(title) <= 80
    assert "\n" not in title
    assert "\\" not in titles.latex_to_text(text)


def test_title_survives_deep_nesting() -> None:
    assert len(titles.make_title("$" + "{" * 700 + "x" + "}" * 700 + "$")) < 5
    assert titles.make_title("$" + r"\frac{1}{" * 100 + "$").startswith("1/")
