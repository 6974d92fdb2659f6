"""Figures on pages: tables of data, also downloaded as CSV, and charts with the table behind them. Uses no Django.

A cell holds the raw value (a number, a date, text or None); its column formats it for people.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from charts import bars
from charts.svg import Svg

# Spreadsheets run text that starts with these as a formula; some accept the full-width signs of East Asian keyboards.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


@dataclass(frozen=True)
class TableColumn:
    name: str
    is_number: bool = False
    reads: Callable[[Any], str] | None = None

    def show(self, value: Any) -> str:
        if value is None:
            return "–"
        if self.reads is not None:
            return self.reads(value)
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def number_columns(*names: str, reads: Callable[[Any], str] | None = None) -> list[TableColumn]:
    return [TableColumn(name, is_number=True, reads=reads) for name in names]


@dataclass(frozen=True)
class DataTable:
    """`key` names the file, `name` describes the content. The first column holds row headings."""

    key: str
    name: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Any]]

    def shown(self) -> Iterator[list[tuple[TableColumn, str]]]:
        """Yield the rows formatted for people."""
        for row in self.rows:
            yield [(column, column.show(value)) for column, value in zip(self.columns, row, strict=True)]

    def as_csv(self) -> str:
        """Write the rows for programs: full precision, ISO dates, empty cells for None."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([escape_formula(name) for name in self._headings()])
        writer.writerows([escape_formula(value) for value in row] for row in self.rows)
        return text.getvalue()

    def _headings(self) -> Iterator[str]:
        """Prefix repeated names with the column before them, so that every heading in the file is unique."""
        counts, prefix = Counter(column.name for column in self.columns), ""
        for column in self.columns:
            is_unique = counts[column.name] == 1
            prefix = column.name if is_unique else prefix
            yield column.name if is_unique else f"{prefix}, {column.name}"


def escape_formula(value: Any) -> Any:
    """Return a cell that no spreadsheet runs as a formula."""
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value


@dataclass(frozen=True)
class Chart:
    svg: Svg
    table: DataTable
    narrow: Svg | None = None  # for charts whose text would be too small to read when scaled down


def draw_for_both_widths(draw: Callable[..., Svg], table: DataTable, *, wide: float = bars.WIDE) -> Chart:
    """Call `draw` with each width."""
    return Chart(draw(width=wide), table, narrow=draw(width=bars.WIDTH))
