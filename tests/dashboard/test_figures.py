"""Tables as files: formulas are escaped as text, and numbers are exact."""

import csv
import io

import pytest

from dashboard.figures import DataTable, TableColumn

COLUMNS = (TableColumn("Name"), TableColumn("Pay", is_number=True, reads=lambda value: f"€ {value}"))


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-2", "@SUM(A1)", "\tx", "\rx", "\nx", "＝1+1"])
def test_as_csv_makes_formulas_harmless(name: str) -> None:
    table = DataTable("pay", "", COLUMNS, [(name, 1.25)])
    rows = list(csv.reader(io.StringIO(table.as_csv(), newline="")))
    assert rows[1] == [f"'{name}", "1.25"]


def test_as_csv_keeps_numbers_and_leaves_out_the_unknown() -> None:
    table = DataTable("pay", "", COLUMNS, [("A, B", -0.125), ("C", None)])
    assert table.as_csv().splitlines() == ["Name,Pay", '"A, B",-0.125', "C,"]


def test_as_csv_tells_columns_apart_that_are_called_the_same() -> None:
    names = ("Rater", "Gold", "from", "to", "Alike", "from", "to")
    table = DataTable("pay", "", [TableColumn(name) for name in names], [])
    assert table.as_csv().strip() == 'Rater,Gold,"Gold, from","Gold, to",Alike,"Alike, from","Alike, to"'
    assert [column.name for column in table.columns] == list(names)


def test_shown_reads_as_its_column_says() -> None:
    table = DataTable("pay", "", COLUMNS, [("A", 2), ("B", None)])
    assert [[text for _, text in row] for row in table.shown()] == [["A", "€ 2"], ["B", "–"]]
