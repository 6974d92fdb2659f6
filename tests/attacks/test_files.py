"""Small files that unpack to gigabytes or take minutes to parse are refused, and the message names the limit."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import zstandard
from pyarrow import parquet

from formats import raw_values, record_reader, strict_json
from formats.input_files import RATIO_LIMIT, UnreadableFile
from formats.records import BadLine
from labeling.traces import file_process, record_spool
from labeling.traces.scan import ImportOptions, read_records

MANY = strict_json.WALK_LIMIT + 10
VALUES = "[" + "0," * MANY

pytestmark = pytest.mark.fault


def repeated_text(length: int, rows: int) -> Any:
    """Return a column of a text that Parquet stores once."""
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), ["x" * length])


def read_table(path: Path) -> list[Any]:
    with path.open("rb") as stream:
        return list(record_reader.read_rows(stream, "parquet"))


def only_reason(path: Path) -> str:
    (line,) = read_table(path)
    assert isinstance(line, BadLine)
    return line.reason


def test_parquet_that_unpacks_to_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"prompt": repeated_text(80_000_000, 5)}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    assert f"{RATIO_LIMIT} times" in only_reason(path)


def test_parquet_with_many_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    names = [f"c{number}" for number in range(record_reader.COLUMN_LIMIT + 1)]
    parquet.write_table(pyarrow.table({name: [1] for name in names}), path)
    assert f"{record_reader.COLUMN_LIMIT:,}" in only_reason(path)


def test_parquet_with_large_chunks_or_long_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.parquet"
    parquet.write_table(pyarrow.table({"prompt": ["x" * 100, "y"]}), path, compression="none")
    monkeypatch.setattr(record_reader, "LINE_LIMIT", 100)
    assert [isinstance(row, BadLine) for row in read_table(path)] == [True, False]
    monkeypatch.setattr(record_reader, "CHUNK_LIMIT", 50)
    assert "50" in only_reason(path)


def test_large_chunks_are_read_in_small_batches(tmp_path: Path) -> None:
    path = tmp_path / "few.parquet"
    parquet.write_table(pyarrow.table({"prompt": repeated_text(60_000_000, 1000)}), path)
    assert record_reader._check_parquet_sizes(parquet.read_metadata(path)) <= 4


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (VALUES + "}", len(VALUES) + 1),
        (VALUES + '{"a": 1, "a": 2}]', 1),
        (VALUES + r'"\u0000"]', 1),
        (VALUES + r'"\ud800"]', 1),
        (VALUES + "NaN]", 1),
    ],
    ids=["malformed", "duplicate key", "NUL", "surrogate", "NaN"],
)
def test_error_after_very_many_values_is_found_quickly(text: str, column: int) -> None:
    with pytest.raises(strict_json.JsonRefused) as caught:
        strict_json.locate_values(text.encode())
    assert caught.value.column == column


def test_record_with_very_many_values_is_accepted() -> None:
    text = json.dumps({"more": ["\\u0000", "\U0001f600", *[0] * MANY]})
    strict_json.locate_values(text.encode())
    strict_json.check_strictness(text.encode())


def test_process_that_looks_at_a_file_has_a_memory_limit(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    columns = {f"c{number}": repeated_text(60_000_000, 1000) for number in range(8)}
    parquet.write_table(pyarrow.table(columns), path, compression="zstd")
    assert path.stat().st_size < 300_000
    with pytest.raises(UnreadableFile) as caught:
        file_process.preview_file(path, ImportOptions(format="trl"))
    assert f"{file_process.MAX_SECONDS} seconds" in str(caught.value)


def test_process_that_looks_at_a_file_has_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_process, "MAX_SECONDS", 1)
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(3):
            file.write(b'{"problem": 5, "steps": ["a"], "more": [' + b'{"a":1},' * 2_400_000 + b"1]}\n")
    with pytest.raises(UnreadableFile) as caught:
        file_process.preview_file(path, ImportOptions(format="native"))
    assert " 1 seconds" in str(caught.value)


def scan(path: Path, format: str) -> None:
    with record_spool.open_spool(path.parent / "spool") as spool:
        for _progress in file_process.scan_file(path, ImportOptions(format=format), spool):
            pass


def test_process_of_an_import_has_a_memory_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_process, "SCAN_MEMORY", 64 * 1024**2)
    path = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"prompt": repeated_text(30_000_000, 20)}), path, compression="zstd")
    with pytest.raises(UnreadableFile) as caught:
        scan(path, "trl")
    assert " 64 MB" in str(caught.value)


def test_process_of_an_import_has_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_process, "SCAN_SECONDS", 1)
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(b'{"problem": 5, "steps": ["a"], "more": [' + b'{"a":1},' * 4_000_000 + b"1]}\n")
    with pytest.raises(UnreadableFile) as caught:
        scan(path, "native")
    assert " 1 seconds" in str(caught.value)


def test_message_names_the_limit_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"problem": "' + b"x" * raw_values.LINE_LIMIT + b'", "steps": ["a"]}\n')
    (line,) = [each for each in read_records(path, ImportOptions(format="native")) if isinstance(each, BadLine)]
    assert f"{raw_values.LINE_LIMIT:,}" in line.reason


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (b"[" * 300 + b"]" * 300, strict_json.DEPTH_LIMIT),
        (b"[" + b"9" * (strict_json.NUMBER_LIMIT + 1) + b"]", strict_json.NUMBER_LIMIT),
    ],
    ids=["depth", "number"],
)
def test_message_names_the_limit_of_json(text: bytes, limit: int) -> None:
    with pytest.raises(strict_json.JsonRefused) as caught:
        strict_json.locate_values(text)
    assert f"{limit:,}" in caught.value.reason


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_message_names_the_limit_of_unpacking(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"bomb.jsonl.{packing}"
    content = (b" " * 999_999 + b"\n") * 200
    path.write_bytes(gzip.compress(content) if packing == "gz" else zstandard.compress(content))
    with pytest.raises(UnreadableFile) as caught:
        list(read_records(path, ImportOptions(format="native")))
    assert f"{RATIO_LIMIT}" in str(caught.value)
