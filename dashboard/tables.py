"""Tables of data, shown on pages and downloaded as CSV. Uses no Django.

A cell holds the raw value (a number, a date, text or None); its column formats it for people.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
        writer.writerow([_escape_formula(name) for name in self._headings()])
        writer.writerows([_escape_formula(value) for value in row] for row in self.rows)
        return text.getvalue()

    def _headings(self) -> Iterator[str]:
        """Prefix repeated names with the column before them, so that every heading in the file is unique."""
        counts, prefix = Counter(column.name for column in self.columns), ""
        for column in self.columns:
            is_unique = counts[column.name] == 1
            prefix = column.name if is_unique else prefix
            yield column.name if is_unique else f"{prefix}, {column.name}"


def _escape_formula(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value
