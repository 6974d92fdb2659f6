"""Compare mathematical expressions, in plain text or LaTeX, without a computer algebra system.

An expression is evaluated at three points, with the same value for the same name in both expressions. Two expressions
that agree at all of them are the same: an identity holds everywhere, and another one at such points only by accident.
Tokens, nesting and exponents are bounded, so that no answer of a model costs more than about a millisecond.
"""

import hashlib
import math
import re
from collections.abc import Callable

_MAX_CHARACTERS = 400
_MAX_DEPTH = 30
_MAX_EXPONENT = 60.0
_POINTS = range(3)
_TOLERANCE = 1e-6
_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+|\\?[a-zA-Z]+|[-+*/^(){}\[\],|!_=])", re.ASCII)
_REPLACED = (
    (re.compile(r"\\(?:left|right|,|;|!|:|quad|displaystyle)(?![a-zA-Z])"), " "),
    (re.compile(r"\\(?:text|mathrm|mbox|operatorname)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:times|cdot|ast)(?![a-zA-Z])|[×·∗]"), "*"),
    (re.compile(r"\\div(?![a-zA-Z])|÷"), "/"),
    (re.compile(r"\\[dt]frac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\\(?:frac|binom)\s*(\d)\s*(\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\sqrt\s*(\d)"), r"\\sqrt{\1}"),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|°|\\degree"), ""),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))|\{,\}"), ""),
    (re.compile(r"\\[\$%]|[\$%]"), ""),
    (re.compile("π"), r"\\pi "),
    (re.compile("√"), r"\\sqrt "),
    (re.compile(r"\*\*"), "^"),
    (re.compile("[−–]"), "-"),
)
_CONSTANTS = {"pi": math.pi, "e": math.e, "infty": math.inf}
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "exp", "sqrt", "cosh", "sinh", "tanh")},
    "arcsin": math.asin,
    "arccos": math.acos,
    "arctan": math.atan,
    "ln": math.log,
    "log": math.log10,
    "abs": abs,
}


class Unreadable(ValueError):
    """The text is not an expression, or has no value at the point."""


def normalize_expression(text: str) -> str:
    """Return the text with one spelling for signs that mean the same."""
    text = text.strip().rstrip(".").strip()
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    return text.strip()


def is_same_expression(left: str, right: str) -> bool:
    """Return whether both are the same expression, tuple, interval or set. Unreadable texts must be equal."""
    if max(len(left), len(right)) > _MAX_CHARACTERS:
        return False
    left, right = normalize_expression(left), normalize_expression(right)
    if re.sub(r"\s", "", left) == re.sub(r"\s", "", right):
        return bool(left)
    lefts, rights = _split_parts(left), _split_parts(right)
    if len(lefts) > 1 or len(rights) > 1:
        return _brackets(left) == _brackets(right) and _are_same(lefts, rights)
    return _is_same_value(_drop_name(left), _drop_name(right))


def _are_same(lefts: list[str], rights: list[str]) -> bool:
    pairs = zip(lefts, rights, strict=False)
    return len(lefts) == len(rights) and all(_is_same_value(each, other) for each, other in pairs)


def _is_same_value(left: str, right: str) -> bool:
    try:
        pairs = [(evaluate_expression(left, point), evaluate_expression(right, point)) for point in _POINTS]
    except Unreadable:
        return False
    return all(each == other or abs(each - other) <= _TOLERANCE * max(1.0, abs(other)) for each, other in pairs)


def _drop_name(text: str) -> str:
    """Return the value of "x = 5". An equation between expressions stays as it is."""
    name, sign, value = text.partition("=")
    return value if sign and re.fullmatch(r"\s*[a-zA-Z](?:\([a-zA-Z]\))?\s*", name) else text


def _brackets(text: str) -> tuple[str, str]:
    return (text[0], text[-1]) if text[:1] in ("(", "[", "{", "\\") and len(text) > 1 else ("", "")


def _split_parts(text: str) -> list[str]:
    """Split at the commas outside of inner brackets."""
    inner = text[1:-1] if text[:1] in "([" and text[-1:] in ")]" and _is_enclosed(text) else text
    inner = re.sub(r"^\\\{|\\\}$", "", inner)
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(inner):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append(inner[start:at])
            start = at + 1
    return [*parts, inner[start:]] if parts else [text]


def _is_enclosed(text: str) -> bool:
    """Return whether the first bracket closes at the end."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0:
            return at == len(text) - 1
    return False


def evaluate_expression(text: str, point: int) -> float:
    """Return the value at one of the points, or raise Unreadable."""
    parser = _ExpressionParser(_list_tokens(text), point)
    try:
        value = parser.parse()
    except (ArithmeticError, ValueError, RecursionError) as error:
        raise Unreadable(text) from error
    if math.isnan(value):
        raise Unreadable(text)
    return value


def _list_tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unreadable(text)
        tokens.append(match[1])
        at = match.end()
    if not tokens:
        raise Unreadable(text)
    return tokens


class _ExpressionParser:
    """Recursive descent: sum, product (also without a sign), sign, power, atom."""

    def __init__(self, tokens: list[str], point: int) -> None:
        self._tokens, self._point = tokens, point
        self._at = self._depth = 0

    def parse(self) -> float:
        value = self._sum()
        if self._at < len(self._tokens):
            raise Unreadable(self._peek())
        return value

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        lexeme = self._peek()
        if not lexeme or (expected and lexeme != expected):
            raise Unreadable(lexeme)
        self._at += 1
        return lexeme

    def _sum(self) -> float:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Unreadable("nested")
        value = self._product()
        while self._peek() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        self._depth -= 1
        return value

    def _product(self) -> float:
        value = self._signed()
        while True:
            lexeme = self._peek()
            if lexeme in ("*", "/"):
                self._take()
                factor = self._signed()
                value = value * factor if lexeme == "*" else value / factor
            elif lexeme and lexeme not in "+-)}],|=!_^":
                value *= self._power()
            else:
                return value

    def _signed(self) -> float:
        sign = 1.0
        while self._peek() in ("+", "-"):
            sign = -sign if self._take() == "-" else sign
        return sign * self._power()

    def _power(self) -> float:
        base = self._atom()
        while self._peek() == "!":
            self._take()
            if not (base.is_integer() and 0 <= base <= 100):
                raise Unreadable("!")
            base = float(math.factorial(int(base)))
        if self._peek() != "^":
            return base
        self._take()
        exponent = self._sign_and_atom()
        if abs(exponent) > _MAX_EXPONENT:
            raise Unreadable("^")
        power = base**exponent
        if isinstance(power, complex):
            raise Unreadable("^")
        return float(power)

    def _sign_and_atom(self) -> float:
        sign = 1.0
        while self._peek() in ("+", "-"):
            sign = -sign if self._take() == "-" else sign
        return sign * self._power()

    def _atom(self) -> float:
        lexeme = self._take()
        if lexeme[0].isdigit() or lexeme[0] == ".":
            return float(lexeme)
        if lexeme in ("(", "{", "["):
            value = self._sum()
            self._take({"(": ")", "{": "}", "[": "]"}[lexeme])
            return value
        if lexeme == "|":
            value = abs(self._sum())
            self._take("|")
            return value
        if lexeme[0] != "\\" and not lexeme[0].isalpha():
            raise Unreadable(lexeme)
        return self._named(lexeme)

    def _named(self, lexeme: str) -> float:
        name = lexeme.removeprefix("\\")
        if name == "frac":
            above = self._atom()
            return above / self._atom()
        if name == "sqrt" and self._peek() == "[":
            self._take()
            degree = self._sum()
            self._take("]")
            return math.pow(self._atom(), 1 / degree)
        if name in _FUNCTIONS:
            power = self._function_power()
            return math.pow(_FUNCTIONS[name](self._power()), power)
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if lexeme[0] == "\\" or len(name) == 1:
            return self._variable(name)
        # Letters without a sign between them are a product of variables.
        return math.prod(self._variable(letter) for letter in name)

    def _function_power(self) -> float:
        """Return the 2 of sin^2 x."""
        if self._peek() != "^":
            return 1.0
        self._take()
        return self._atom()

    def _variable(self, name: str) -> float:
        if self._peek() == "_":
            self._take()
            name += "_" + self._take()
        digest = hashlib.sha256(f"{name} {self._point}".encode()).digest()
        return 0.3 + 1.7 * int.from_bytes(digest[:6]) / 2**48
