"""Charts as SVG: pure functions from numbers to drawings. They know neither Django nor our models, carry no style (the
sheet `static/css/charts.css` gives it by class), and have a name that says what one sees."""

from dataclasses import dataclass

from dashboard.charts.svg import Svg
from dashboard.tables import DataTable


@dataclass(frozen=True)
class Chart:
    """A drawing with the table behind it."""

    svg: Svg
    table: DataTable
    narrow: Svg | None = None  # the same for a phone, where one is too wide to be read small
