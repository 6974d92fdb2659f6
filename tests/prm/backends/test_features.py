"""Features of steps: which equations are checked, and which are ignored."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prm.backends import features


@pytest.mark.parametrize(
    "step",
    [
        "3 * 4 = 12",
        "So 18 - 6 = 12 flamingos are left.",
        r"\(1/3 \times 18 = 6\)",
        "2 + 3 * 4 = 14",
        "10/3 = 3.33",
        "$5 + $6 = $11",
        "x = 3 + 4 = 7",
        "1,200 * 2 = 2,400",
        "-3 + 5 = 2",
        "5 - -3 = 8",
        r"\frac{1}{2} + 3 = 3.5",
        "12 ÷ 4 - 5 = -2.",
    ],
)
def test_true_equation_is_true(step: str) -> None:
    assert features.count_equations(step) == (1, 0)


@pytest.mark.parametrize("step", ["3*4=13", "6 - 2 = -4", "2 + 3 * 4 = 20", "10/3 = 3.34", r"5 \cdot 5 = 24"])
def test_false_equation_is_false(step: str) -> None:
    assert features.count_equations(step) == (0, 1)


@pytest.mark.parametrize(
    "step", ["2x + 3 = 7", "3 + 4 = 7x", "(3 + 4) * 2 = 14", "100 * 0.2 = 20%", "2^3 + 1 = 9", "0/0 = 1", "a = b", ""]
)
def test_other_text_is_ignored(step: str) -> None:
    assert features.count_equations(step) == (0, 0)


@given(st.lists(st.integers(-999, 999), min_size=2, max_size=5), st.data())
def test_chains_equal_the_arithmetic_of_python(numbers: list[int], data: st.DataObject) -> None:
    symbols = [data.draw(st.sampled_from("+-*")) for _ in numbers[1:]]
    chain = str(numbers[0]) + "".join(
        f" {symbol} {number}" for symbol, number in zip(symbols, numbers[1:], strict=True)
    )
    value = eval(chain)  # only numbers and + - *
    assert features.count_equations(f"{chain} = {value}") == (1, 0)
    assert features.count_equations(f"{chain} = {value + 1}") == (0, 1)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="0123456789.,+-*/=()$ \\x", max_size=300))
def test_any_text_can_be_checked(step: str) -> None:
    features.count_equations(step)


def test_endless_chain_is_ignored() -> None:
    assert features.count_equations("1 + " * 500_000) == (0, 0)
