"""PRM800K both ways: lines come back byte for byte, from fields or residue, from records or compact rows."""

import datetime as dt
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import prm800k
from formats.raw_values import RawValue
from formats.records import BadLine, TraceRecord
from formats.rows import SEPARATOR, CompactRow, ExportRow, RowFacts
from tests.formats import prm800k_lines as prm
from tests.formats.export_rows import EXPORT_FACTS


def parsed(line: bytes) -> TraceRecord:
    record = prm800k.parse_value(RawValue(line, 1))
    assert isinstance(record, TraceRecord), record
    return record


@given(prm.lines())
@pytest.mark.fault
def test_fields_or_residue_reproduce_any_line(line: bytes) -> None:
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
def test_residue_is_kept_if_fields_do_not_reproduce_the_line(old: bytes, new: bytes) -> None:
    line = prm.make_line().replace(old, new, 1)
    assert parsed(prm.make_line()).residue is None
    assert parsed(line).residue == line


def test_parse_keeps_a_negative_zero() -> None:
    line = prm.make_line().replace(b"0.25", b"-0.0", 1)
    assert parsed(line).residue is None
    assert prm800k.compose_line(parsed(line)) == line


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"generation": "5"}, "generation"),
        ({"generation": 2**40}, "generation"),
        ({"timestamp": "yesterday"}, "timestamp"),
        ({"timestamp": "0001-01-01T00:00:00+23:00"}, "timestamp"),
        ({"steps": [prm.make_step("a", 2)]}, "label.steps[0].completions[0].rating"),
        ({"steps": [prm.make_step("a", chosen=1)]}, "chosen_completion"),
        ({"steps": None}, "label.steps"),
        ({"labeler": "x" * 101}, "labeler"),
        ({"problem": None}, "question.problem"),
        ({"pre_generated_verifier_score": "high"}, "question.pre_generated_verifier_score"),
    ],
)
def test_parse_names_the_field_that_is_wrong(changes: dict[str, object], field: str) -> None:
    line = prm.make_line(**changes)
    bad = prm800k.parse_value(RawValue(line, 3))
    assert isinstance(bad, BadLine)
    assert bad.reason.endswith(f" in {field}")
    assert line[: bad.column - 1].rstrip().endswith(f'"{field.rpartition(".")[2].partition("[")[0]}":'.encode())
    assert bad.line == 3
    assert 1 < bad.column <= len(line)


def test_read_continues_after_a_bad_line() -> None:
    stream = io.BytesIO(prm.make_line() + b"\n[]\n\n" + prm.make_line() + b"\n")
    items = list(prm800k.read(stream))
    assert [item.line for item in items] == [1, 2, 4]
    assert [type(item) for item in items] == [TraceRecord, BadLine, TraceRecord]


# --- export rows ---------------------------------------------------------------------------------------------------

cells = st.tuples(st.sampled_from(["0", "1", "-1", ""]), st.sampled_from(["", "true", "false"])).map(
    lambda rated: f"0,{'' if rated[0] == '-1' else 0},{rated[0]},{rated[1]}"
)


def both(facts: RowFacts, plain: CompactRow) -> tuple[list[bytes], list[bytes]]:
    return list(prm800k.write([ExportRow(facts, plain)])), list(prm800k.write([ExportRow(facts, plain).record]))


@pytest.mark.fault
@given(
    st.lists(prm.texts.filter(lambda text: SEPARATOR not in text), min_size=1, max_size=4),
    st.lists(cells, min_size=1, max_size=4),
    st.none() | st.floats(0, 1),
    st.none() | st.integers(0, 2**40),
    st.booleans(),
)
def test_compact_rows_and_records_give_the_same_lines(
    texts: list[str], rated: list[str], score: float | None, total_ms: int | None, has_answer: bool
) -> None:
    facts = EXPORT_FACTS._replace(
        n_steps=len(texts), verifier_score=score, total_ms=total_ms, has_reference_answer=has_answer, text=texts[0]
    )
    plain = CompactRow(SEPARATOR.join(texts), len(texts), None, 7, None, ";".join(rated[: len(texts)]))
    quick, careful = both(facts, plain)
    assert quick == careful


def test_compact_rows_handle_a_text_that_looks_like_the_separator() -> None:
    """A text with a backslash and `u001f` looks like two texts once it is quoted."""
    quick, careful = both(EXPORT_FACTS._replace(n_steps=1), CompactRow("a\\u001fb", 1, None, 1, None, "0,0,1,"))
    assert quick == careful
    assert b"a\\\\u001fb" in quick[0]


def test_compact_rows_find_alternatives_by_id() -> None:
    """Option 12 of step 2 is at position 2; it was shown first, and only it was rated."""
    plain = CompactRow(SEPARATOR.join("abcd"), 4, "2:11 2:12", 1, None, "0,0,1,;2 0 1,,-1,false,2,12")
    quick, careful = both(EXPORT_FACTS._replace(n_steps=2), plain)
    assert quick == careful
    second = ExportRow(EXPORT_FACTS._replace(n_steps=2), plain).record.submissions[0].turns[1]
    assert [(each.text, each.rating, each.flagged) for each in second.shown or ()] == [
        ("d", -1, False),
        ("b", None, None),
        ("c", None, None),
    ]


def test_timestamps_are_written_in_utc_without_a_zone() -> None:
    at = dt.datetime(2022, 11, 6, 3, 24, 46, 649379, tzinfo=dt.UTC)
    (line,), _ = both(EXPORT_FACTS._replace(n_steps=1, submitted_at=at), CompactRow("a", 1, None, 1, None, "0,0,1,"))
    assert b'"timestamp": "2022-11-06T03:24:46.649379"' in line
