"""Recompute the equations between plain numbers in a step, independently of the generator's code."""

import math
import re
from collections.abc import Iterator
from fractions import Fraction

FORMULA = re.compile(r"\$\$?(.+?)\$\$?")
TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|\\frac|\\binom|\\sqrt|\\lfloor|\\rfloor|\\cdot|\\boxed|[-+*/^(){}!])")


class NotPlain(Exception):
    """The text has letters or symbols that this reader does not know."""


class EquationReader:
    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text.replace(r"\left", "").replace(r"\right", "")))
        self.place = 0

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise NotPlain
        self.place += 1
        return token

    def sum(self) -> Fraction:
        value = self.product()
        while self.peek() in {"+", "-"}:
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> Fraction:
        value = self.power()
        while self.peek() in {r"\cdot", "/"}:
            value = value * self.power() if self.take() == r"\cdot" else value / self.power()
        return value

    def power(self) -> Fraction:
        if self.peek() == "-":
            self.take()
            return -self.power()
        value = self.atom()
        if self.peek() == "^":
            self.take()
            value = value ** int(self.braced() if self.peek() == "{" else self.atom())
        return value

    def braced(self) -> Fraction:
        self.take("{")
        value = self.sum()
        self.take("}")
        return value

    def atom(self) -> Fraction:
        token = self.take()
        if token == "(":
            value = self.sum()
            self.take(")")
            return value
        if token == r"\frac":
            return self.braced() / self.braced()
        if token == r"\binom":
            return Fraction(math.comb(int(self.braced()), int(self.braced())))
        if token == r"\lfloor":
            value = self.sum()
            self.take(r"\rfloor")
            return Fraction(math.floor(value))
        if token == r"\sqrt":
            value = self.braced()
            root = math.isqrt(int(value))
            if root * root != value:
                raise NotPlain
            return Fraction(root)
        if not token[0].isdigit():
            raise NotPlain
        return Fraction(token)


def _tokens(text: str) -> Iterator[str]:
    place = 0
    while text[place:].strip():
        match = TOKEN.match(text, place)
        if match is None:
            raise NotPlain
        yield match[1]
        place = match.end()


def value_of(text: str) -> Fraction:
    reader = EquationReader(text)
    value = reader.sum()
    if reader.peek():
        raise NotPlain
    return value


def check_equations(text: str) -> Iterator[bool]:
    """Yield for each equation between plain numbers whether it is true."""
    for formula in FORMULA.findall(text):
        body, _, modulus = formula.partition(r"\pmod")
        sides = [_side(side) for side in re.split(r"=|\\equiv", body)]
        signs = re.findall(r"=|\\equiv", body)
        for left, sign, right in zip(sides, signs, sides[1:], strict=False):
            if left is None or right is None or (sign != "=" and not modulus):
                continue
            yield left == right if sign == "=" else (left - right) % value_of(modulus.strip("{}")) == 0


def _side(text: str) -> Fraction | None:
    try:
        return value_of(text)
    except (NotPlain, ZeroDivisionError):
        return None
