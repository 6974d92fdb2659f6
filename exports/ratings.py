"""What the rows of a manifest say: how their ratings spread, and where their first errors are. Reads only."""

from typing import Any

import statements
from labeling.models import Manifest

# A row for each submission: how often each rating was given, the place of the first error on the trace's own path (its
# first options; of a live trace what was chosen has no such place), and whether the reading was cut off.
_READ = """SELECT COUNT(CASE WHEN j.rating = -1 THEN 1 END) AS negative,
  COUNT(CASE WHEN j.rating = 0 THEN 1 END) AS neutral,
  COUNT(CASE WHEN j.rating = 1 THEN 1 END) AS positive,
  MIN(CASE WHEN j.rating = -1 AND o.position = 0 THEN s.position END) AS place,
  MAX(CASE WHEN u.finish_reason IN ('give_up', 'bad_problem') THEN 1 ELSE 0 END) AS was_cut_off
FROM labeling_manifestrow m
JOIN labeling_submission u ON u.id = m.submission_id
JOIN labeling_turn t ON t.assignment_id = u.assignment_id AND t.revision = u.revision
JOIN labeling_step s ON s.id = t.step_id
JOIN labeling_judgment j ON j.turn_id = t.id
JOIN labeling_option o ON o.id = j.option_id
WHERE m.manifest_id = %s GROUP BY m.position"""
_TOGETHER = f"""SELECT place, was_cut_off, COUNT(*), SUM(negative), SUM(neutral), SUM(positive)
FROM ({_READ}) AS reading GROUP BY place, was_cut_off"""  # noqa: S608  made of constants


def count(frozen: Manifest) -> dict[str, Any]:
    """`labels` by rating; `first_errors` by position from 0, with `none` and `cut_off` for readings without one."""
    labels, places = {"-1": 0, "0": 0, "1": 0}, dict[str, int]()
    for place, was_cut_off, n, negative, neutral, positive in statements.rows(_TOGETHER, [frozen.pk]):
        name = str(place) if place is not None else "cut_off" if was_cut_off else "none"
        places[name] = places.get(name, 0) + n
        for key, more in (("-1", negative), ("0", neutral), ("1", positive)):
            labels[key] += int(more)
    return {"labels": labels, "first_errors": places}
