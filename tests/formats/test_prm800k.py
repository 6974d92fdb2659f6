"""What is plain is composed from pieces of text, to the same bytes as from its record."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from formats import prm800k
from formats.rows import SEPARATOR, CompactRow, ExportRow, RowFacts
from tests.formats import prm800k_lines as prm
from tests.formats.export_rows import EXPORT_FACTS

cells = st.tuples(st.sampled_from(["0", "1", "-1", ""]), st.sampled_from(["", "true", "false"])).map(
    lambda said: f"0,{'' if said[0] == '-1' else 0},{said[0]},{said[1]}"
)


def both(facts: RowFacts, plain: CompactRow) -> tuple[list[bytes], list[bytes]]:
    return list(prm800k.write_lines([ExportRow(facts, plain)])), list(prm800k.write([ExportRow(facts, plain).record]))


@given(
    st.lists(prm.texts.filter(lambda text: SEPARATOR not in text), min_size=1, max_size=4),
    st.lists(cells, min_size=1, max_size=4),
    st.none() | st.floats(0, 1),
    st.none() | st.integers(0, 2**40),
    st.booleans(),
)
def test_lines_are_what_records_give(
    texts: list[str], said: list[str], score: float | None, total_ms: int | None, has_answer: bool
) -> None:
    facts = EXPORT_FACTS._replace(
        n_steps=len(texts), verifier_score=score, total_ms=total_ms, has_reference_answer=has_answer, text=texts[0]
    )
    plain = CompactRow(SEPARATOR.join(texts), len(texts), None, 7, None, ";".join(said[: len(texts)]))
    quick, careful = both(facts, plain)
    assert quick == careful


def test_lines_take_care_where_json_spells_the_separator() -> None:
    """A text that holds a backslash and `u001f` looks like two once it is quoted."""
    quick, careful = both(EXPORT_FACTS._replace(n_steps=1), CompactRow("a\\u001fb", 1, None, 1, None, "0,0,1,"))
    assert quick == careful
    assert b"a\\\\u001fb" in quick[0]


def test_lines_know_alternatives_by_their_ids() -> None:
    """Option 12 of step 2 stands at place 2; it was shown first, and alone was judged."""
    plain = CompactRow(SEPARATOR.join("abcd"), 4, "2:11 2:12", 1, None, "0,0,1,;2 0 1,,-1,false,2,12")
    quick, careful = both(EXPORT_FACTS._replace(n_steps=2), plain)
    assert quick == careful
    second = ExportRow(EXPORT_FACTS._replace(n_steps=2), plain).record.submissions[0].turns[1]
    assert [(each.text, each.rating, each.flagged) for each in second.shown or ()] == [
        ("d", -1, False),
        ("b", None, None),
        ("c", None, None),
    ]


def test_time_is_written_in_utc_without_a_zone() -> None:
    at = dt.datetime(2022, 11, 6, 3, 24, 46, 649379, tzinfo=dt.UTC)
    (line,), _ = both(EXPORT_FACTS._replace(n_steps=1, submitted_at=at), CompactRow("a", 1, None, 1, None, "0,0,1,"))
    assert b'"timestamp": "2022-11-06T03:24:46.649379"' in line
