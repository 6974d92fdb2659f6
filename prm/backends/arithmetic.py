"""Check the plain arithmetic in a step: 3 * 4 = 12 is true, 3 * 4 = 13 is false.

Only equations with a chain of numbers and + - * / on the left and one number on the right are checked; anything else
(brackets, powers, variables) is ignored. A correctly rounded result is true.
"""

import operator
import re
from collections.abc import Callable

_TIMES = re.compile(r"\\times|\\cdot|×|·")
_DIVIDE = re.compile(r"\\div|÷")
_FRACTION = re.compile(r"\\[dt]?frac\{(-?\d+(?:\.\d+)?)\}\{(-?\d+(?:\.\d+)?)\}")
_NUMBER = r"-?\$?\d+(?:,\d{3})*(?:\.\d+)?"
_EQUATION = re.compile(
    rf"(?<![\w.)\]}}^*/+-])({_NUMBER}(?:\s*[-+*/]\s*{_NUMBER})+)"  # a chain of numbers from its start
    rf"\s*=\s*({_NUMBER})(?!\d|%|\s*[-+*/^(]|[a-zA-Z]|\\[a-zA-Z])"  # and a complete result
)
_TERM = re.compile(r"\s*([-+*/]?)\s*(-?\$?\d+(?:,\d{3})*(?:\.\d+)?)")
_BINDING: dict[str, Callable[[float, float], float]] = {"*": operator.mul, "/": operator.truediv}
_MAX_VALUE = 1e15
_MAX_CHARACTERS = 4_000  # the pattern tries every term of a chain as its start, which is quadratic


def count_equations(step: str) -> tuple[int, int]:
    """Return the number of true and of false equations in a step."""
    results = [_is_true(left, right) for left, right in _EQUATION.findall(_replace_latex(step[:_MAX_CHARACTERS]))]
    return results.count(True), results.count(False)


def _replace_latex(step: str) -> str:
    step = _FRACTION.sub(r"\1 / \2", step)
    return _DIVIDE.sub("/", _TIMES.sub("*", step)).replace("\\$", "").replace("$", "")


def _is_true(left: str, right: str) -> bool | None:
    value = _evaluate(left)
    if value is None or abs(value) > _MAX_VALUE:
        return None
    stated = _parse_number(right)
    places = len(right.split(".")[1]) if "." in right else 0
    is_rounded = places > 0 or value % 1 != 0
    return abs(value - stated) <= (0.51 * 10.0**-places if is_rounded else 1e-9)


def _evaluate(chain: str) -> float | None:
    """Evaluate a chain by operator precedence, from the left; None for a division by zero."""
    tokens = _tokenize(chain)
    total, product, sign = 0.0, tokens[0][1], 1.0
    for symbol, number in tokens[1:]:
        if symbol in _BINDING:
            if symbol == "/" and number == 0:
                return None
            product = _BINDING[symbol](product, number)
        else:
            total, product = total + sign * product, number
            sign = -1.0 if symbol == "-" else 1.0
    return total + sign * product


def _tokenize(chain: str) -> list[tuple[str, float]]:
    """Return pairs of an operator and the number after it; a minus at the start or after an operator is a sign."""
    parts = [(symbol, _parse_number(number)) for symbol, number in _TERM.findall(chain)]
    first = -parts[0][1] if parts[0][0] == "-" else parts[0][1]
    return [("", first), *parts[1:]]


def _parse_number(text: str) -> float:
    return float(text.replace(",", "").replace("$", ""))
