"""Clauses of a guideline: which headings they are, their numbers, and their digests."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeling.projects.clauses import parse_clauses

POLICY = """# Returns

Read this first.

## Refunds

Within 30 days.

### Faulty goods

```
# not a heading
```

## § 7 Privacy

#### Names

Last
----
"""


def number(markdown: str) -> list[str]:
    return [clause.code for clause in parse_clauses(markdown)]


def test_headings_are_numbered_by_their_place_or_keep_their_number() -> None:
    clauses = parse_clauses(POLICY)
    assert [(each.code, each.title) for each in clauses] == [
        ("1", "Refunds"),
        ("1.1", "Faulty goods"),
        ("7", "Privacy"),
        ("7.1", "Names"),
        ("3", "Last"),
    ]
    assert (clauses[0].excerpt, clauses[3].excerpt) == ("Within 30 days.", "")


@pytest.mark.parametrize(
    ("markdown", "codes"),
    [
        ("", []),
        ("Text only.", []),
        ("# One", ["1"]),
        ("# One\n# Two", ["1", "2"]),
        ("# 1. One\n# 1. Two", ["1", "1-2"]),
        ("# 30 days\n# 2 Two\n# B.3 Three", ["1", "2", "B.3"]),
        ("# T\n### A\n## B\n### C", ["1", "2", "2.1"]),
        ("> # quoted\n\n#\n", []),
    ],
)
def test_numbers(markdown: str, codes: list[str]) -> None:
    assert number(markdown) == codes


def test_digest_is_that_of_title_and_text_only() -> None:
    first = {each.code: each.digest for each in parse_clauses(POLICY)}
    moved = {each.code: each.digest for each in parse_clauses(POLICY.replace("## Refunds", "## New\n\n##  Refunds"))}
    changed = {each.code: each.digest for each in parse_clauses(POLICY.replace("30 days", "31 days"))}
    assert moved["2"] == first["1"]
    assert {code for code in first if changed[code] != first[code]} == {"1"}


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["1. A", "2 B", "§ 1.1 C", "D", "1.1-2 E"])), max_size=12))
def test_numbers_are_unique(headings: list[tuple[int, str]]) -> None:
    codes = number("\n".join(f"{'#' * level} {text}\n\ntext" for level, text in headings))
    assert len(codes) == len(set(codes))
    assert len(headings) - 1 <= len(codes) <= len(headings)
