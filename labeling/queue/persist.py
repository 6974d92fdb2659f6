"""Write work on an assignment to the database, by the statement in `record.sql`.

Opening an assignment is written in two places. `record.sql` opens one that is held, with the rater's first message or
without any. `claim.sql` makes one that is open from the start: a row that a statement inserts cannot be updated by the
same statement, and a second one would cost every claim a round trip.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

import rawsql

_RECORD = rawsql.load_sql(__file__, "record.sql")

_Rows = Sequence[Mapping[str, Any]]


class AsRead(NamedTuple):
    """What an assignment must still look like for anything to be written."""

    assignment: int
    version: int
    state: str
    revision: int
    submitted_revision: int
    is_reopened: bool


def persist(
    *,
    as_read: AsRead,
    new_version: int,
    now: dt.datetime,
    lease_ends_at: dt.datetime | None,
    client: str = "",
    writes: _Rows = (),
    turns: _Rows = (),
    judgments: _Rows = (),
) -> int | None:
    """Write these rows, and open the assignment if it was only held. Return its new version, or None, and write
    nothing, if it is no longer as it was read."""
    found = rawsql.fetch_rows(
        _RECORD,
        {
            **as_read._asdict(),
            "new_version": new_version,
            "content": orjson.dumps({"writes": writes, "turns": turns, "judgments": judgments}).decode(),
            "client": client,
            "now": now,
            "lease_ends_at": lease_ends_at,
        },
    )
    return found[0][0] if found else None
