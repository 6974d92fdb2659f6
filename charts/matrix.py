"""Matrices: cells in steps of ink, as dark as their share is high."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts import number_format

_STEPS = 7


@dataclass(frozen=True)
class MatrixCell:
    """What stands in a cell (`big`, and `small` below it) and how dark it is. Without a class it is empty."""

    big: str = ""
    small: str = ""
    css: str = "hx"


@dataclass(frozen=True)
class Matrix:
    name: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell]]]


def get_shade_class(share: float, low: float = 0.0, high: float = 1.0) -> str:
    """The class of a share: h0 the palest, h6 the darkest."""
    place = (share - low) / (high - low) if high > low else 1.0
    return f"h{min(max(int(place * _STEPS), 0), _STEPS - 1)}"


def build_share_cell(share: float | None, n: int, *, low: float = 0.0, high: float = 1.0) -> MatrixCell:
    """A share with its n below."""
    return (
        MatrixCell()
        if share is None
        else MatrixCell(number_format.format_share(share), f"{n:,}", get_shade_class(share, low, high))
    )


def build_count_cell(n: int, share: float) -> MatrixCell:
    """A count with its share of the row below."""
    return MatrixCell(f"{n:,}", number_format.format_share(share), get_shade_class(share))
