"""A chart on a page: the drawing, the table behind it, and a narrow drawing for phones."""

from collections.abc import Callable
from dataclasses import dataclass

from charts import bars
from charts.svg import Svg
from dashboard.tables import DataTable


@dataclass(frozen=True)
class Chart:
    svg: Svg
    table: DataTable
    narrow: Svg | None = None  # for charts whose text would be too small to read when scaled down


def draw_for_both_widths(draw: Callable[..., Svg], table: DataTable, *, wide: float = bars.WIDE) -> Chart:
    """Call `draw` with each width."""
    return Chart(draw(width=wide), table, narrow=draw(width=bars.WIDTH))
