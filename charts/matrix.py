"""Matrices whose cells are shaded by their share."""

from collections.abc import Sequence
from dataclasses import dataclass

from charts import number_format

_STEPS = 7


@dataclass(frozen=True)
class MatrixCell:
    """A cell: its text, small text below, and shade. The default is an empty cell."""

    big: str = ""
    small: str = ""
    css: str = "hx"


@dataclass(frozen=True)
class Matrix:
    name: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell]]]


def get_shade_class(share: float, low: float = 0.0, high: float = 1.0) -> str:
    """Return the shade of a share, from h0 (lightest) to h6 (darkest)."""
    position = (share - low) / (high - low) if high > low else 1.0
    return f"h{min(max(int(position * _STEPS), 0), _STEPS - 1)}"


def build_share_cell(share: float | None, n: int, *, low: float = 0.0, high: float = 1.0) -> MatrixCell:
    """Build a cell with a share and its n below."""
    if share is None:
        return MatrixCell()
    return MatrixCell(number_format.format_share(share), f"{n:,}", get_shade_class(share, low, high))


def build_count_cell(n: int, share: float) -> MatrixCell:
    """Build a cell with a count and its share of the row below."""
    return MatrixCell(f"{n:,}", number_format.format_share(share), get_shade_class(share))
