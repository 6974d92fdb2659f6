"""PRM800K's reader: what it takes and what it refuses."""

import io

import pytest
from hypothesis import given

from formats import prm800k
from formats.records import BadLine, TraceRecord
from tests.formats import prm800k_lines as prm


def parsed(line: bytes) -> TraceRecord:
    record = prm800k.parse_line(line, number=1)
    assert isinstance(record, TraceRecord), record
    return record


@given(prm.lines())
def test_parse_gives_each_line_back_from_fields_or_residue(line: bytes) -> None:
    record = parsed(line)
    assert (record.residue or prm800k.compose_line(record)) == line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"labeler"', b'"more": 1, "labeler"'),
        (b"0.25", b"1"),
        (b"0.25", b"2.5e-1"),
        (b".649379", b""),
        (b".649379", b".649379Z"),
        (b": ", b":"),
        (b"6", b"\\u0036"),
        (b'"generation": 5, ', b""),
        (b'"chosen_completion": null', b'"chosen_completion": null, "corrected_rating": null'),
    ],
)
def test_parse_keeps_the_line_where_the_fields_do_not_give_it_back(old: bytes, new: bytes) -> None:
    line = prm.make_line().replace(old, new, 1)
    assert parsed(prm.make_line()).residue is None
    assert parsed(line).residue == line


def test_parse_keeps_the_sign_of_a_zero() -> None:
    line = prm.make_line().replace(b"0.25", b"-0.0", 1)
    assert parsed(line).residue is None
    assert prm800k.compose_line(parsed(line)) == line


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"generation": "5"}, "Expected `int | null`, got `str`, in generation"),
        ({"generation": 2**40}, "Expected `int` <= 2147483647, in generation"),
        ({"timestamp": "yesterday"}, "not a time: expected for example 2022-07-13T18:55:54.496450, in timestamp"),
        ({"timestamp": "0001-01-01T00:00:00+23:00"}, "not a time"),
        (
            {"steps": [prm.make_step("a", 2)]},
            "not one of the values allowed: 2, in label.steps[0].completions[0].rating",
        ),
        ({"steps": [prm.make_step("a", chosen=1)]}, "completion 1 was chosen (counted from 0), but there are 1"),
        ({"steps": None}, "Expected `array`, got `null`, in label.steps"),
        ({"labeler": "x" * 101}, "in labeler"),
        ({"problem": None}, "Expected `str`, got `null`, in question.problem"),
        ({"pre_generated_verifier_score": "high"}, "in question.pre_generated_verifier_score"),
    ],
)
def test_parse_refuses_what_is_not_a_record(changes: dict[str, object], reason: str) -> None:
    line = prm.make_line(**changes)
    bad = prm800k.parse_line(line, number=3)
    assert isinstance(bad, BadLine)
    assert reason in bad.reason
    assert bad.line == 3
    assert 1 < bad.column <= len(line)


def test_read_goes_on_after_a_bad_line() -> None:
    stream = io.BytesIO(prm.make_line() + b"\n[]\n\n" + prm.make_line() + b"\n")
    found = list(prm800k.read(stream))
    assert [item.line for item in found] == [1, 2, 4]
    assert [type(item) for item in found] == [TraceRecord, BadLine, TraceRecord]
