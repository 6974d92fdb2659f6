"""Records that a scan keeps for the load."""

import io
import json
from pathlib import Path

import pytest

from formats import catalog
from formats.records import BadLine, TraceRecord
from labeling.traces import record_spool
from tests.formats import prm800k_lines as prm

NATIVE = {
    "problem": "What is 2?",
    "answer": None,
    "steps": ["a", {"text": "b", "alternatives": ["c"]}],
    "labels": [1, -1],
    "labeler": "ann",
    "verifier_score": 0.5,
    "source": {"deep": [1, 2.5, None, "é"]},
}


def read_lines(name: str, *lines: bytes) -> list[TraceRecord | BadLine]:
    return list(catalog.get_input_format(name).read(io.BytesIO(b"\n".join(lines))))


@pytest.mark.parametrize(("name", "line"), [("native", json.dumps(NATIVE).encode()), ("prm800k", prm.make_line())])
def test_records_come_back_as_they_were(tmp_path: Path, name: str, line: bytes) -> None:
    records = read_lines(name, line, b"{broken", line)
    assert [type(record) for record in records] == [TraceRecord, BadLine, TraceRecord]
    with record_spool.open_spool(tmp_path) as spool:
        for record in records:
            spool.add(record)
        assert list(spool.read()) == records
    assert not list(tmp_path.iterdir())


def test_numbers_of_any_length_come_back(tmp_path: Path) -> None:
    (record,) = read_lines("native", json.dumps({**NATIVE, "source": 2**80}).encode())
    assert isinstance(record, TraceRecord)
    assert record.metadata == {"source": 2**80}
    with record_spool.open_spool(tmp_path) as spool:
        spool.add(record)
        assert list(spool.read()) == [record]
