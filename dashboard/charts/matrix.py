"""Matrices: cells in steps of ink, as dark as their share is high."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts import words

_STEPS = 7


@dataclass(frozen=True)
class Cell:
    """What stands in a cell (`big`, and `small` below it) and how dark it is. Without a class it is empty."""

    big: str = ""
    small: str = ""
    css: str = "hx"


@dataclass(frozen=True)
class Matrix:
    name: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]


def ink(share: float, low: float = 0.0, high: float = 1.0) -> str:
    """The class of a share: h0 the palest, h6 the darkest."""
    place = (share - low) / (high - low) if high > low else 1.0
    return f"h{min(max(int(place * _STEPS), 0), _STEPS - 1)}"


def cell(share: float | None, n: int, *, low: float = 0.0, high: float = 1.0) -> Cell:
    """A share with its n below."""
    return Cell() if share is None else Cell(words.share(share), f"{n:,}", ink(share, low, high))


def counted(n: int, share: float) -> Cell:
    """A count with its share of the row below."""
    return Cell(f"{n:,}", words.share(share), ink(share))
