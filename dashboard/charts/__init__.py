"""Charts as SVG: pure functions from numbers to drawings. They know neither Django nor our models, carry no style (the
sheet `static/css/charts.css` gives it by class), and have a name that says what one sees."""

from dataclasses import dataclass

from dashboard.charts.drawing import Svg
from dashboard.tables import Table


@dataclass(frozen=True)
class Chart:
    """A drawing with the table behind it."""

    svg: Svg
    table: Table
    is_wide: bool = False  # too wide for a phone: it scrolls in its own box
