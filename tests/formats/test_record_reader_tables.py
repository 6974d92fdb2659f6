"""Formats read from CSV and Parquet."""

import io
import json

import pyarrow
import pytest
from pyarrow import parquet

from formats import catalog, raw_values
from formats.catalog import UnknownFormat
from formats.records import BadLine, TraceRecord

CSV = """problem,answer,steps,is_right,ref
"What is 2 + 2?",4,"[""2 + 2"", ""= 4""]",true,a
"Two
lines, and a comma",,"[""x""]",,b
"""


def read(content: bytes, format: str, table: str) -> list[TraceRecord | BadLine]:
    return list(catalog.read_traces(io.BytesIO(content), format=format, table=table))


def parquet_of(rows: list[dict[str, object]]) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


RENAMED = b"question,answer,cot,note,\np,4,One thing. Two things.,x,0\n"
COLUMNS = {"question": "problem", "cot": "text", "note": ""}


@pytest.mark.parametrize("table", ["csv", "parquet"])
def test_columns_are_renamed_and_left_out(table: str) -> None:
    row: dict[str, object] = {"question": "p", "answer": "4", "cot": "One thing. Two things.", "note": "x"}
    content = RENAMED if table == "csv" else parquet_of([row])
    assert catalog.detect_format(io.BytesIO(content), table=table, columns=COLUMNS).name == "native"
    (made,) = catalog.read_traces(io.BytesIO(content), format="native", table=table, columns=COLUMNS)
    assert isinstance(made, TraceRecord)
    assert (made.problem.text, made.problem.answer, len(made.steps)) == ("p", "4", 2)
    for odd in ({"qestion": "problem"}, {**COLUMNS, "answer": "problem"}):
        (bad,) = catalog.read_traces(io.BytesIO(content), format="native", table=table, columns=odd)
        assert isinstance(bad, BadLine)
        assert (bad.line, bad.column) == (1, 1)


@pytest.mark.parametrize("text", ["question", "=problem", "question=problem,x"])
def test_malformed_column_names_are_refused(text: str) -> None:
    assert raw_values.parse_columns("question = problem,notes=\n") == {"question": "problem", "notes": ""}
    with pytest.raises(ValueError, match="COLUMN"):
        raw_values.parse_columns(text)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_csv_is_read(mark: bytes) -> None:
    content = mark + CSV.encode()
    assert catalog.detect_format(io.BytesIO(content), table="csv").name == "native"
    first, second = read(content, "native", "csv")
    assert isinstance(first, TraceRecord)
    assert isinstance(second, TraceRecord)
    assert [step.options[0].text for step in first.steps] == ["2 + 2", "= 4"]
    assert (first.problem.answer, first.is_right, first.ref) == ("4", True, "a")
    assert (second.problem.text, second.is_right) == ("Two\nlines, and a comma", None)


def test_csv_texts_may_begin_like_json() -> None:
    """Problems of MATH begin with a drawing, those of exams with their points."""
    content = b'problem,text\n"[asy] draw(x); [/asy] Say.","{a} is one. So it is."\n[1],[2]\n'
    drawn, short = read(content, "native", "csv")
    assert isinstance(drawn, TraceRecord)
    assert isinstance(short, TraceRecord)
    assert (drawn.problem.text, short.problem.text) == ("[asy] draw(x); [/asy] Say.", "[1]")
    assert drawn.steps[0].options[0].text == "{a} is one."


def test_parquet_of_any_format_is_read() -> None:
    rows: list[dict[str, object]] = [
        {"problem": "p", "steps": ["a", "b"], "label": 1, "id": "x", "final_answer_correct": False},
        {"problem": "p", "steps": ["a", "c"], "label": -1, "id": "y", "final_answer_correct": None},
    ]
    content = parquet_of(rows)
    assert catalog.detect_format(io.BytesIO(content), table="parquet").name == "processbench"
    found = read(content, "processbench", "parquet")
    assert [record.ref for record in found if isinstance(record, TraceRecord)] == ["x", "y"]
    assert [record.is_right for record in found if isinstance(record, TraceRecord)] == [False, None]


@pytest.mark.parametrize(
    ("content", "table", "expected"),
    [
        (b"problem,steps\np\n", "csv", (2, 1)),
        (b'problem,steps\np,"[1"\n', "csv", (2, 2)),
        (b'problem,steps\np,"[1]"\n', "csv", (2, 2)),
        (b'problem,steps\n"p\nq","[1]"\n', "csv", (2, 2)),
        (b'problem,ref,steps\np,,"[{""text"": ""a"", ""text"": ""b""}]"\n', "csv", (2, 3)),
        (b"problem,problem\np,x\n", "csv", (1, 1)),
        (b'problem,steps\n"p,x\n', "csv", (2, 1)),
        (b"problem,steps\n\xff,x\n", "csv", (2, 1)),
        (b'problem,steps\n"p\x00","[""a""]"\n', "csv", (2, 1)),
        (b"nothing of the kind", "parquet", (1, 1)),
    ],
)
def test_bad_tables_are_refused_at_row_and_cell(content: bytes, table: str, expected: tuple[int, int]) -> None:
    (bad,) = [item for item in read(content, "native", table) if isinstance(item, BadLine)]
    assert (bad.line, bad.column) == expected


def test_nul_in_parquet_is_refused() -> None:
    (bad,) = read(parquet_of([{"problem": "a\x00", "steps": ["x"]}]), "native", "parquet")
    assert isinstance(bad, BadLine)
    assert (bad.line, bad.column) == (1, 1)


def test_prm800k_is_not_read_from_tables() -> None:
    with pytest.raises(UnknownFormat):
        read(json.dumps({}).encode(), "prm800k", "csv")
