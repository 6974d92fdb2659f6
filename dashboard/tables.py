"""Tables: what stands behind every chart, on the page and as a file. Knows nothing of the web.

A cell is what it is (a number, a date, a word, None); a column says how a person reads it.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# A spreadsheet takes what begins so for a formula, and runs it; some read the wide signs of East Asian keyboards alike.
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
    """`key` names the file; `name` says what is in it. The first column heads its row."""

    key: str
    name: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Any]]

    def shown(self) -> Iterator[list[tuple[TableColumn, str]]]:
        """The rows as a person reads them."""
        for row in self.rows:
            yield [(column, column.show(value)) for column, value in zip(self.columns, row, strict=True)]

    def as_csv(self) -> str:
        """The rows as a program reads them: full numbers, ISO dates, nothing for what is not known."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([_escape_formula(name) for name in self._headings()])
        writer.writerows([_escape_formula(value) for value in row] for row in self.rows)
        return text.getvalue()

    def _headings(self) -> Iterator[str]:
        """On the page "from" stands beside what it belongs to; a program asks for a column by its name alone."""
        often, about = Counter(column.name for column in self.columns), ""
        for column in self.columns:
            about = column.name if often[column.name] == 1 else about
            yield column.name if often[column.name] == 1 else f"{about}, {column.name}"


def _escape_formula(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value
