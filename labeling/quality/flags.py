"""Signs that somebody's work should be looked at. They send a lead to look, and never pause or ban. Reads only.

Told by the latest readings of a project: steps rated faster than anybody reads, neutral far more often than others,
never an error where others find some.
"""

from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

import statements

FLAGS = {
    "fast": _("Rates many steps in less than 0.4 seconds"),
    "neutral": _("Rates neutral far more often than others"),
    "no_errors": _("Never finds an error where others do"),
}
LATEST = 2000  # readings of a project
_TOO_FAST_MS, _MUCH_TOO_FAST = 400, 0.2
_NEUTRAL_TIMES, _NEUTRAL_LEAST = 3, 0.1
_LEAST_STEPS, _LEAST_READINGS, _USUAL_ERRORS = 30, 20, 0.1


def of_project(*, project_id: int) -> dict[int, list[str]]:
    """The flags of each rater who has any."""
    rows = statements.rows(_COUNTED, [project_id, _TOO_FAST_MS])
    steps, neutral = sum(row[1] for row in rows), sum(row[3] for row in rows)
    readings, errors = sum(row[4] for row in rows), sum(row[5] for row in rows)
    usual_neutral = neutral / steps if steps else 0.0
    usual_errors = errors / readings if readings else 0.0
    raised = {rater: _of_rater(_Seen(*counts), usual_neutral, usual_errors) for rater, *counts in rows}
    return {rater: flags for rater, flags in raised.items() if flags}


class _Seen(NamedTuple):
    """What was counted of one rater."""

    steps: int
    fast: int
    neutral: int
    readings: int
    errors: int


def _of_rater(seen: _Seen, usual_neutral: float, usual_errors: float) -> list[str]:
    raised = []
    much_neutral = max(_NEUTRAL_TIMES * usual_neutral, _NEUTRAL_LEAST)
    if seen.steps >= _LEAST_STEPS and seen.fast > _MUCH_TOO_FAST * seen.steps:
        raised.append("fast")
    if seen.steps >= _LEAST_STEPS and seen.neutral > much_neutral * seen.steps:
        raised.append("neutral")
    if seen.readings >= _LEAST_READINGS and not seen.errors and usual_errors >= _USUAL_ERRORS:
        raised.append("no_errors")
    return raised


_COUNTED = f"""
WITH latest AS (
  SELECT r.assignment_id, r.rater_id, r.revision, r.first_error FROM labeling_report r
  WHERE r.project_id = %s ORDER BY r.assignment_id DESC LIMIT {LATEST})
SELECT x.rater_id, COUNT(*), COUNT(CASE WHEN u.active_ms < %s THEN 1 END), COUNT(CASE WHEN j.rating = 0 THEN 1 END),
  COUNT(DISTINCT x.assignment_id),
  COUNT(DISTINCT CASE WHEN x.first_error IS NOT NULL THEN x.assignment_id END)
FROM latest x
JOIN labeling_turn u ON u.assignment_id = x.assignment_id AND u.revision = x.revision
JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
JOIN labeling_option o ON o.id = j.option_id AND o.position = 0
GROUP BY x.rater_id
"""  # noqa: S608  the one number in it is ours
