"""Brute-force solvers for each problem family, which use only the numbers of a problem."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.demo.math_problems import arithmetic

Facts = dict[str, Any]
FACES = range(1, 7)


def is_same_number(answer: str, found: float | Fraction) -> bool:
    """Return whether the printed answer equals the solver's number."""
    number, times_pi = (answer.removesuffix(r"\pi"), math.pi) if answer.endswith(r"\pi") else (answer, 1)
    return math.isclose(float(arithmetic.value_of(number)) * times_pi, float(found), rel_tol=1e-9)


def as_probability(good: int, every: int) -> Fraction:
    return Fraction(good, every)


def solve_quadratic(total: int, product: int) -> tuple[complex, complex]:
    root = complex(total * total - 4 * product) ** 0.5
    return (total + root) / 2, (total - root) / 2


def sum_of_squares(facts: Facts) -> float:
    one, two = solve_quadratic(*facts["vieta"])
    return (one**2 + two**2).real


def two_equations(facts: Facts) -> int:
    a, b, e, c, d, f = facts["system"]
    span = range(-30, 31)
    (found,) = [(x, y) for x, y in itertools.product(span, span) if a * x + b * y == e and c * x + d * y == f]
    return sum(found)


def absolute_value(facts: Facts) -> Fraction:
    a, b, c = facts["absolute"]
    return sum((Fraction(k, a) for k in range(-200, 200) if abs(k - b) == c), Fraction())


def radical(facts: Facts) -> int:
    more, shift = facts["radical"]
    (found,) = [x for x in range(-more, 500) if x >= shift and x + more == (x - shift) ** 2]
    return found


def least_value(facts: Facts) -> int:
    a, b, c = facts["parabola"]
    return int(min(a * x * x + b * x + c for x in range(-50, 51)))


def polynomial_value(facts: Facts) -> int:
    coefficients, at = facts["horner"]
    return int(sum(each * at**power for power, each in enumerate(reversed(coefficients))))


def mixed_up_number(facts: Facts) -> int:
    total, gain = facts["digits"]
    pairs = [(n // 10, n % 10, n) for n in range(10, 100)]
    (found,) = [n for a, b, n in pairs if a + b == total and 10 * b + a - n == gain]
    return found


def altitude(facts: Facts) -> float:
    """Use coordinates, with side c on the x axis."""
    a, b, c = facts["heron"]
    foot = (b * b + c * c - a * a) / (2 * c)
    return math.sqrt(b * b - foot * foot)


def shoelace(facts: Facts) -> Fraction:
    """Use Pick's theorem: count lattice points inside and on the edge."""
    points = facts["points"]
    edges = list(zip(points, [*points[1:], points[0]], strict=True))
    span = range(-1, 15)
    on_edge = {p for p in itertools.product(span, span) if any(_between(p, *edge) for edge in edges)}
    inside = [p for p in itertools.product(span, span) if p not in on_edge and _is_inside(p, edges)]
    return Fraction(2 * len(inside) + len(on_edge) - 2, 2)


def _between(p: Any, q: Any, r: Any) -> bool:
    cross = (r[0] - q[0]) * (p[1] - q[1]) - (r[1] - q[1]) * (p[0] - q[0])
    boxed = min(q[0], r[0]) <= p[0] <= max(q[0], r[0]) and min(q[1], r[1]) <= p[1] <= max(q[1], r[1])
    return bool(cross == 0 and boxed)


def _is_inside(p: Any, edges: list[Any]) -> bool:
    crossings = 0
    for (x1, y1), (x2, y2) in edges:
        if (y1 > p[1]) != (y2 > p[1]) and p[0] < Fraction((x2 - x1) * (p[1] - y1), y2 - y1) + x1:
            crossings += 1
    return crossings % 2 == 1


def two_draws(facts: Facts) -> Fraction:
    many, few = facts["balls"]
    draws = list(itertools.permutations("a" * many + "b" * few, 2))
    return as_probability(sum(one == two for one, two in draws), len(draws))


def at_least_one(facts: Facts) -> Fraction:
    rolls = list(itertools.product(FACES, repeat=facts["rolls"]))
    return as_probability(sum(6 in roll for roll in rolls), len(rolls))


def dice_sum(facts: Facts) -> Fraction:
    rolls = list(itertools.product(FACES, FACES))
    return as_probability(sum(sum(roll) >= facts["bound"] for roll in rolls), len(rolls))


def committee(facts: Facts) -> int:
    women, men, size, least = facts["committee"]
    chosen = itertools.combinations([("w", n) for n in range(women)] + [("m", n) for n in range(men)], size)
    return sum(sum(kind == "w" for kind, _ in each) >= least for each in chosen)


def game(facts: Facts) -> Fraction:
    stake, prize, small = facts["game"]
    return Fraction(sum({6: prize, 5: small, 4: small}.get(face, 0) - stake for face in FACES), 6)


def discount(facts: Facts) -> Fraction:
    price, off, tax = facts["sale"]
    return Fraction(price) * (1 - Fraction(off, 100)) * (1 + Fraction(tax, 100))


def mixture(facts: Facts) -> Fraction:
    litres, weak, extra, strong = facts["mixture"]
    return Fraction(sum([weak] * litres + [strong] * extra), litres + extra)


def ages(facts: Facts) -> int:
    times, years, later = facts["ages"]
    (found,) = [times * x for x in range(200) if x + times * x + 2 * years == later]
    return int(found)


def geometric_sum(facts: Facts) -> int:
    term, ratio, last = facts["terms"]
    total = term
    while term < last:
        term *= ratio
        total += term
    return int(total)


def recurrence(facts: Facts) -> int:
    start, factor, shift, index = facts["recurrence"]
    terms = [start]
    while len(terms) < index:
        terms.append(factor * terms[-1] + shift)
    return int(terms[-1])


def collatz(facts: Facts) -> int:
    path = [facts["start"]]
    while path[-1] != 1:
        path.append(3 * path[-1] + 1 if path[-1] % 2 else path[-1] // 2)
    return len(path) - 1


def journey(facts: Facts) -> Fraction:
    distance, there, back = facts["journey"]
    return Fraction(2 * distance) / (Fraction(distance, there) + Fraction(distance, back))


def remainders(facts: Facts) -> int:
    small, one, large, two = facts["remainders"]
    return min(n for n in range(small * large) if n % small == one and n % large == two)


SOLVERS: dict[str, Callable[[Facts], float | Fraction]] = {
    "sum_of_squares": sum_of_squares,
    "two_equations": two_equations,
    "absolute_value": absolute_value,
    "radical": radical,
    "least_value": least_value,
    "polynomial_value": polynomial_value,
    "mixed_up_number": mixed_up_number,
    "altitude": altitude,
    "shoelace": shoelace,
    "sector": lambda facts: math.pi * facts["sector"][0] ** 2 * facts["sector"][1] / 360,
    "diagonal": lambda facts: math.hypot(*facts["box"]),
    "shadows": lambda facts: facts["shadows"][0] / facts["shadows"][1] * facts["shadows"][2],
    "polygon_angle": lambda facts: 3 * 180 - 90 - sum(facts["angles"]),
    "divisors": lambda facts: sum(facts["number"] % d == 0 for d in range(1, facts["number"] + 1)),
    "common_divisor": lambda facts: max(d for d in range(1, 2000) if all(n % d == 0 for n in facts["pair"])),
    "power_remainder": lambda facts: facts["power"][0] ** facts["power"][1] % facts["power"][2],
    "two_remainders": remainders,
    "trailing_zeros": lambda facts: len(zeros_at_the_end(math.factorial(facts["factorial"]))),
    "two_draws": two_draws,
    "at_least_one": at_least_one,
    "dice_sum": dice_sum,
    "committee": committee,
    "game": game,
    "discount": discount,
    "together": lambda facts: 1 / sum(Fraction(1, hours) for hours in facts["hours"]),
    "mean_speed": journey,
    "mixture": mixture,
    "ages": ages,
    "arithmetic_sum": lambda facts: sum(range(facts["terms"][0], facts["terms"][2] + 1, facts["terms"][1])),
    "geometric_sum": geometric_sum,
    "recurrence": recurrence,
    "telescope": lambda facts: sum(Fraction(1, k * (k + 1)) for k in range(1, facts["end"] + 1)),
    "collatz": collatz,
}


def zeros_at_the_end(number: int) -> str:
    digits = str(number)
    return digits[len(digits.rstrip("0")) :]
