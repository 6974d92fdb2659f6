"""Draw a chart twice, for wide and narrow screens, because scaled-down text is too small to read."""

from collections.abc import Callable

from dashboard.charts import Chart, bars
from dashboard.charts.svg import Svg
from dashboard.tables import DataTable


def draw_for_both_widths(draw: Callable[..., Svg], table: DataTable, *, wide: float = bars.WIDE) -> Chart:
    """Call `draw` with each width."""
    return Chart(draw(width=wide), table, narrow=draw(width=bars.WIDTH))
