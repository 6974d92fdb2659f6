"""A drawing for a screen, and the same for a phone: shrunk, its words could not be read."""

from collections.abc import Callable

from dashboard.charts import Chart, bars
from dashboard.charts.drawing import Svg
from dashboard.tables import Table


def twice(draw: Callable[..., Svg], table: Table, *, wide: float = bars.WIDE) -> Chart:
    """`draw` is told the width alone."""
    return Chart(draw(width=wide), table, narrow=draw(width=bars.WIDTH))
