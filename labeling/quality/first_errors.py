"""Where submissions saw the first error: read from their ratings, for gold and consensus alike. Reads only."""

from collections.abc import Sequence
from typing import NamedTuple

import orjson

import statements
from labeling.models.assignment import FinishReason

# These ended before the trace did: no error among what was rated, and nothing is known beyond.
CENSORED = (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM)


class Report(NamedTuple):
    """One revision of one assignment. `position` is that of the first step whose own text was rated negative."""

    assignment_id: int
    revision: int
    position: int | None
    n_passed: int  # rateable steps before it that were rated, or all that were rated where there is none
    finish_reason: str | None

    @property
    def is_censored(self) -> bool:
        return self.position is None and self.finish_reason in CENSORED


def of_revisions(revisions: Sequence[tuple[int, int]]) -> list[Report]:
    """Of each (assignment, revision) that was submitted, in the order of both; one statement for all."""
    if not revisions:
        return []
    asked = orjson.dumps([list(pair) for pair in revisions]).decode()
    return [
        Report(*row) for row in statements.rows(_ON_POSTGRESQL if statements.on_postgresql() else _ON_SQLITE, [asked])
    ]


_REPORTS = """
WITH asked AS ({asked}),
rated AS (
  SELECT q.assignment_id, q.revision, st.position, j.rating
  FROM asked q
  JOIN labeling_turn u ON u.assignment_id = q.assignment_id AND u.revision = q.revision
  JOIN labeling_step st ON st.id = u.step_id AND st.is_rateable
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id AND o.position = 0),
ended AS (
  SELECT assignment_id, revision, MIN(CASE WHEN rating = -1 THEN position END) AS position
  FROM rated GROUP BY assignment_id, revision)
SELECT s.assignment_id, s.revision, e.position,
  COUNT(CASE WHEN e.position IS NULL OR r.position < e.position THEN r.position END), s.finish_reason
FROM asked q
JOIN labeling_submission s ON s.assignment_id = q.assignment_id AND s.revision = q.revision
LEFT JOIN ended e ON e.assignment_id = q.assignment_id AND e.revision = q.revision
LEFT JOIN rated r ON r.assignment_id = q.assignment_id AND r.revision = q.revision
GROUP BY s.assignment_id, s.revision, e.position, s.finish_reason
ORDER BY s.assignment_id, s.revision"""

# A list of pairs as one parameter, so that the statement is prepared once for any number of them.
_ON_POSTGRESQL = _REPORTS.format(
    asked="SELECT (pair ->> 0)::bigint AS assignment_id, (pair ->> 1)::integer AS revision"
    " FROM json_array_elements(%s::json) AS given (pair)"
)
_ON_SQLITE = _REPORTS.format(
    asked="SELECT json_extract(value, '$[0]') AS assignment_id, json_extract(value, '$[1]') AS revision"
    " FROM json_each(%s)"
)
