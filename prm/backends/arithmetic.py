"""Checks the plain arithmetic that a step writes down: 3 * 4 = 12 is true, 3 * 4 = 13 is not.

Only chains of numbers with + - * / ^ and brackets-free terms on the left of an equals sign are read; what is not of
that form is left alone rather than guessed at. A rounded result is true.
"""

import operator
import re
from collections.abc import Callable

_TIMES = re.compile(r"\\times|\\cdot|×|·")
_DIVIDE = re.compile(r"\\div|÷")
_FRACTION = re.compile(r"\\[dt]?frac\{(-?\d+(?:\.\d+)?)\}\{(-?\d+(?:\.\d+)?)\}")
_NUMBER = r"-?\$?\d+(?:,\d{3})*(?:\.\d+)?"
_EQUATION = re.compile(
    rf"(?<![\w.)\]}}^*/+-])({_NUMBER}(?:\s*[-+*/]\s*{_NUMBER})+)"  # a chain that begins with its first number
    rf"\s*=\s*({_NUMBER})(?!\d|%|\s*[-+*/^(]|[a-zA-Z]|\\[a-zA-Z])"  # and a result that does not go on
)
_TERM = re.compile(r"\s*([-+*/]?)\s*(-?\$?\d+(?:,\d{3})*(?:\.\d+)?)")
_BINDS: dict[str, Callable[[float, float], float]] = {"*": operator.mul, "/": operator.truediv}
_LARGEST = 1e15
_READ = 4_000  # characters of a step; a chain of terms is looked at from each of its terms


def count_equations(step: str) -> tuple[int, int]:
    """How many equations of a step are true, and how many are false."""
    found = [_is_true(left, right) for left, right in _EQUATION.findall(_plain(step[:_READ]))]
    return found.count(True), found.count(False)


def _plain(step: str) -> str:
    step = _FRACTION.sub(r"\1 / \2", step)
    return _DIVIDE.sub("/", _TIMES.sub("*", step)).replace("\\$", "").replace("$", "")


def _is_true(left: str, right: str) -> bool | None:
    value = _value(left)
    if value is None or abs(value) > _LARGEST:
        return None
    said = _number(right)
    places = len(right.split(".")[1]) if "." in right else 0
    is_rounded = places > 0 or value % 1 != 0
    return abs(value - said) <= (0.51 * 10.0**-places if is_rounded else 1e-9)


def _value(chain: str) -> float | None:
    """Multiplication and division first, then sums, from the left."""
    tokens = _signed(chain)
    total, product, sign = 0.0, tokens[0][1], 1.0
    for symbol, number in tokens[1:]:
        if symbol in _BINDS:
            if symbol == "/" and number == 0:
                return None
            product = _BINDS[symbol](product, number)
        else:
            total, product = total + sign * product, number
            sign = -1.0 if symbol == "-" else 1.0
    return total + sign * product


def _signed(chain: str) -> list[tuple[str, float]]:
    """(operator before it, number) pairs; a minus right behind an operator, or at the start, belongs to the number."""
    parts = [(symbol, _number(number)) for symbol, number in _TERM.findall(chain)]
    first = -parts[0][1] if parts[0][0] == "-" else parts[0][1]
    return [("", first), *parts[1:]]


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("$", ""))
