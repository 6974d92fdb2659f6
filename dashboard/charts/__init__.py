"""Charts as SVG: pure functions from numbers to drawings, without Django or models.

Drawings carry CSS classes instead of styles, and each has an accessible name."""

from dataclasses import dataclass

from dashboard.charts.svg import Svg
from dashboard.tables import DataTable


@dataclass(frozen=True)
class Chart:
    """A drawing with its data as a table."""

    svg: Svg
    table: DataTable
    narrow: Svg | None = None  # for phones, where the wide drawing would be too small to read
