"""Update an assignment and its ratings in one statement, `update_assignment.sql`.

An assignment is opened in two statements. `update_assignment.sql` opens a held one, with the rater's first message or
without any. `claim.sql` inserts one that is open from the start: a statement cannot update a row that it inserts, and a
second statement would cost every claim a round trip.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

import rawsql

_UPDATE = rawsql.load_sql(__file__, "update_assignment.sql")

_Rows = Sequence[Mapping[str, Any]]


class ExpectedAssignment(NamedTuple):
    """The assignment as the caller read it. If any of this has changed, nothing is written."""

    assignment: int
    version: int
    state: str
    revision: int
    submitted_revision: int
    is_reopened: bool


def update_assignment(
    *,
    expected: ExpectedAssignment,
    new_version: int,
    now: dt.datetime,
    lease_ends_at: dt.datetime | None,
    client: str = "",
    edits: _Rows = (),
    reviews: _Rows = (),
    judgments: _Rows = (),
) -> int | None:
    """Write these rows, and open the assignment if it is held. Return the new version, or None if the assignment is not
    as expected."""
    rows = rawsql.fetch_rows(
        _UPDATE,
        {
            **expected._asdict(),
            "new_version": new_version,
            "content": orjson.dumps({"edits": edits, "reviews": reviews, "judgments": judgments}).decode(),
            "client": client,
            "now": now,
            "lease_ends_at": lease_ends_at,
        },
    )
    return rows[0][0] if rows else None
