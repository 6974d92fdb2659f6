"""Signs that somebody's work should be looked at. They send a lead to look, and never pause or ban. Reads only.

Told by the latest readings of a project. Each sign has its figure, its interval and what is usual; a flag is a sign
that is raised. Holding a key down rates one step only, so that fast steps are the rater's own.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

import rawsql
from stats import rater_signals
from stats.arrays import Floats
from stats.rater_signals import RaterSignal


class SignalKind(NamedTuple):
    """What a sign is called, what it is, and what is good."""

    name: Promise
    what: Promise


SIGNAL_KINDS = {
    "fast": SignalKind(
        _("many fast steps"), _("Share of steps rated in less than 0.4 seconds. Good: none; raised above one in five.")
    ),
    "unread": SignalKind(
        _("faster than reading"),
        _("Share of steps rated faster than 1.5 seconds or ten words a second. Good: few; raised above one in two."),
    ),
    "quick": SignalKind(
        _("quick traces"),
        _(
            "How far the usual time for a word lies below that of the others, in deviations. Good: near 0; raised"
            " below -2.5."
        ),
    ),
    "alike": SignalKind(
        _("always the same"),
        _("Longest run of traces that end alike. Raised from five on where chance gives less than one in a hundred."),
    ),
    "neutral": SignalKind(
        _("much neutral"),
        _("Share of steps rated neutral. Raised at three times that of the others, and above one in ten."),
    ),
    "no_errors": SignalKind(
        _("finds few errors"),
        _("Share of traces in which an error is seen. Raised where surely below two thirds of that of the others."),
    ),
    "falling": SignalKind(
        _("tires"),
        _("Hidden gold right after the first hour of a sitting minus before. Good: 0; raised where it surely falls."),
    ),
}
MAX_READINGS = 2000  # readings of a project
MAX_SUBMISSIONS = 10_000  # of which hidden gold is a twentieth: fewer say nothing of anybody's second hour
SITTING_GAP_SECONDS = 30 * 60  # seconds without a submit end one
HOUR_SECONDS = 3600
_FAST_MS, _LEAST_MS, _WORD_MS = 400, 1500, 100
_LEAST_STEPS, _LEAST_READINGS, _LEAST_TRACES, _LEAST_GOLD = 30, 20, 10, 10


def compute_signals(*, project_id: int) -> dict[int, dict[str, RaterSignal]]:
    """The signs of each rater, by kind, as far as there is enough to say anything."""
    seen = _group_by_rater(rawsql.fetch_rows(_STEPS, {"project": project_id}))
    sittings = _decline_signals(rawsql.fetch_rows(_GOLD, {"project": project_id}))
    every = np.array([each.counts for each in seen.values()], dtype=np.int64).reshape(-1, len(_Counts._fields))
    ends = Counter(end for each in seen.values() for end in each.ends)
    found = {}
    for rater, mine in seen.items():
        others = _Counts(*(every.sum(axis=0) - np.array(mine.counts)).tolist())
        times = np.array([time for other, each in seen.items() if other != rater for time in each.times])
        told = _speed_signals(mine) | {"falling": sittings.get(rater)}
        if others.readings:
            told |= _comparison_signals(mine, others, times, ends - Counter(mine.ends))
        found[rater] = {kind: sign for kind, sign in told.items() if sign is not None}
    return found


def list_raised_kinds(found: Mapping[str, RaterSignal]) -> list[str]:
    return [kind for kind in SIGNAL_KINDS if kind in found and found[kind].is_raised]


def signals_as_dicts(found: Mapping[str, RaterSignal]) -> dict[str, dict[str, Any]]:
    """As figures keep them."""
    return {kind: asdict(sign) for kind, sign in found.items()}


class _Counts(NamedTuple):
    """Of one rater, or of all others."""

    steps: int
    fast: int
    unread: int
    neutral: int
    readings: int
    errors: int


@dataclass
class _RaterReadings:
    """What was seen of one rater, reading by reading."""

    counts: _Counts
    times: list[float]  # log of milliseconds a word
    ends: list[int | None]  # where the first error was seen


def _group_by_rater(rows: Iterable[Sequence[Any]]) -> dict[int, _RaterReadings]:
    """From a row a reading, in order."""
    found: dict[int, _RaterReadings] = {}
    for rater, first_error, *steps, ms, words in rows:
        mine = found.setdefault(rater, _RaterReadings(_Counts(0, 0, 0, 0, 0, 0), [], []))
        more = (*steps, 1, int(first_error is not None))
        mine.counts = _Counts(*(before + now for before, now in zip(mine.counts, more, strict=True)))
        mine.ends.append(first_error)
        if ms and words:
            mine.times.append(math.log(ms / words))
    return found


def _speed_signals(mine: _RaterReadings) -> dict[str, RaterSignal | None]:
    counts = mine.counts
    return {
        "fast": rater_signals.check_share_below(counts.fast, counts.steps, below=0.2, least=_LEAST_STEPS),
        "unread": rater_signals.check_share_below(counts.unread, counts.steps, below=0.5, least=_LEAST_STEPS),
    }


def _comparison_signals(
    mine: _RaterReadings, others: _Counts, times: Floats, ends: Counter[Any]
) -> dict[str, RaterSignal | None]:
    """Held against the others alone: who reads most of a project would else be held against themselves."""
    counts = mine.counts
    neutral, errors = _share(others.neutral, others.steps), _share(others.errors, others.readings)
    usual = {end: n / ends.total() for end, n in ends.items()}
    return {
        "quick": rater_signals.check_speed(np.array(mine.times), times, least=_LEAST_TRACES),
        "alike": rater_signals.check_longest_run(mine.ends, usual, least=_LEAST_READINGS),
        "neutral": rater_signals.check_share_below(
            counts.neutral, counts.steps, below=max(3 * neutral, 0.1), least=_LEAST_STEPS, usual=neutral
        ),
        "no_errors": rater_signals.check_share_reaches(
            counts.errors, counts.readings, mark=errors * 2 / 3, least=_LEAST_READINGS, usual=errors
        ),
    }


def _share(part: int, n: int) -> float:
    return part / n if n else 0.0


def _decline_signals(rows: Iterable[Sequence[Any]]) -> dict[int, RaterSignal | None]:
    """From a row a submission of a rater, in order: seconds since 1970, and the verdict where it was hidden gold."""
    parts: dict[int, list[list[int]]] = defaultdict(lambda: [[0, 0], [0, 0]])
    rater_before, began, last = None, 0.0, 0.0
    for rater, at, verdict in rows:
        if rater != rater_before or at - last > SITTING_GAP_SECONDS:
            began = at
        rater_before, last = rater, at
        if verdict is not None:
            part = parts[rater][at - began > HOUR_SECONDS]
            part[0] += verdict == "right"
            part[1] += 1
    return {
        rater: rater_signals.check_decline((early[0], early[1]), (late[0], late[1]), least=_LEAST_GOLD)
        for rater, (early, late) in parts.items()
    }


_STEPS = f"""
WITH latest AS (
  SELECT r.assignment_id, r.rater_id, r.revision, r.first_error FROM labeling_firsterrorreport r
  WHERE r.project_id = %(project)s ORDER BY r.assignment_id DESC LIMIT {MAX_READINGS}),
step AS (
  SELECT x.assignment_id, x.rater_id, x.first_error, u.active_ms, j.rating,
    LENGTH(o.text) - LENGTH(REPLACE(o.text, ' ', '')) + 1 AS words
  FROM latest x
  JOIN labeling_stepreview u ON u.assignment_id = x.assignment_id AND u.revision = x.revision
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id AND o.position = 0)
SELECT rater_id, first_error, COUNT(*), COUNT(CASE WHEN active_ms < {_FAST_MS} THEN 1 END),
  COUNT(CASE WHEN active_ms < {_LEAST_MS} OR active_ms < {_WORD_MS} * words THEN 1 END),
  COUNT(CASE WHEN rating = 0 THEN 1 END), SUM(active_ms), SUM(words)
FROM step GROUP BY assignment_id, rater_id, first_error ORDER BY assignment_id"""  # noqa: S608  the numbers in it are ours

_GOLD = f"""
WITH latest AS (
  SELECT a.id, a.rater_id, a.submitted_at FROM labeling_assignment a
  WHERE a.project_id = %(project)s AND a.state = 'submitted' AND a.submitted_at IS NOT NULL
  ORDER BY a.submitted_at DESC LIMIT {MAX_SUBMISSIONS})
SELECT x.rater_id, EXTRACT(EPOCH FROM x.submitted_at)::double precision, g.verdict FROM latest x
LEFT JOIN labeling_goldanswer g ON g.assignment_id = x.id AND g.use = 'hidden'
ORDER BY x.rater_id, x.submitted_at, x.id"""  # noqa: S608  the number in it is ours
