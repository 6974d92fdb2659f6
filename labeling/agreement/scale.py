"""From labels as they are written to places on a scale: whether they are numbers, and in which order they stand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labeling.agreement.arrays import Ints

MOST_VALUES = 50  # the sums of a problem grow with the square of the number of values


class BadScale(ValueError):
    """A scale that was told and cannot be one."""


class BadLabel(ValueError):
    """A label that the scale does not have; `row` is its place among the labels."""

    def __init__(self, message: str, row: int) -> None:
        self.row = row
        super().__init__(message)


@dataclass(frozen=True)
class Scale:
    """`names` in order; `values` are the numbers they are, or their ranks where they are no numbers."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    is_numeric: bool
    is_ordered: bool


def read(labels: Sequence[str], *, told: Sequence[str] | None = None) -> tuple[Scale, Ints]:
    """The scale of these labels, and each one's place on it. A told scale may hold values that nobody used."""
    scale = _seen(labels) if told is None else _told(list(told))
    place = {name: n for n, name in enumerate(scale.names)}
    if scale.is_numeric:
        number = {value: n for n, value in enumerate(scale.values)}
        place |= {label: number[n] for label in set(labels) if (n := _number(label)) in number}
    try:
        return scale, np.array([place[label] for label in labels], dtype=np.int64)
    except KeyError as error:
        raise BadLabel(f"the scale has no {error.args[0]!r}", labels.index(error.args[0])) from None


def _seen(labels: Sequence[str]) -> Scale:
    found = _scale(sorted(set(labels)), is_ordered=False)
    if len(found.names) > MOST_VALUES:
        raise BadLabel(f"{len(found.names)} different labels, at most {MOST_VALUES}: is label the right column?", 0)
    return found


def _told(names: list[str]) -> Scale:
    if not all(names):
        raise BadScale("a value is blank: is there a comma too many?")
    if len(set(names)) < len(names):
        raise BadScale("a value is there twice")
    if len(names) > MOST_VALUES:
        raise BadScale(f"{len(names)} values, at most {MOST_VALUES}")
    return _scale(names, is_ordered=True)


def _scale(names: list[str], *, is_ordered: bool) -> Scale:
    numbers = [_number(name) for name in names]
    known = [number for number in numbers if number is not None]
    is_numeric = len(known) == len(names)
    if is_numeric:
        by_value = dict(zip(reversed(known), reversed(names), strict=True))  # 1, 1.0 and +1 are one value
        names, known = [by_value[value] for value in sorted(by_value)], sorted(by_value)
    values = known if is_numeric else [float(n) for n in range(len(names))]
    return Scale(tuple(names), tuple(values), is_numeric, is_ordered or is_numeric)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
