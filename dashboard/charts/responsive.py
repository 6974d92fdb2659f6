"""A drawing for a screen, and the same for a phone: shrunk, its words could not be read."""

from collections.abc import Callable

from dashboard.charts import Chart, bars
from dashboard.charts.svg import Svg
from dashboard.tables import DataTable


def draw_for_both_widths(draw: Callable[..., Svg], table: DataTable, *, wide: float = bars.WIDE) -> Chart:
    """`draw` is told the width alone."""
    return Chart(draw(width=wide), table, narrow=draw(width=bars.WIDTH))
