"""Signals that a rater's work deserves a review. They inform leads, and never pause anyone.

Computed from the latest submissions of a project. Each signal has a value, an interval and the usual value; a flag is a
raised signal. Holding a key down rates only one step, so fast steps are deliberate.
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
    """The name and description of a signal."""

    name: Promise
    what: Promise


class SignalDescription(NamedTuple):
    """One signal of a rater, as shown on a page."""

    kind: str
    name: str
    what: str
    value: float
    low: float
    high: float
    n: int
    usual: float | None
    is_raised: bool


SIGNAL_KINDS = {
    "fast": SignalKind(
        _("many fast steps"), _("Share of steps rated in less than 0.4 seconds. Good: none. Raised above one in five.")
    ),
    "unread": SignalKind(
        _("faster than reading"),
        _(
            "Share of steps rated in less than 1.5 seconds, or at more than ten words per second. Good: few. Raised"
            " above one in two."
        ),
    ),
    "quick": SignalKind(
        _("quick traces"),
        _("Time per word compared with other annotators, in standard deviations. Good: near 0. Flagged below −2.5."),
    ),
    "alike": SignalKind(
        _("repetitive results"),
        _(
            "Longest run of traces with the same first error. Raised from five traces if the probability of such a run"
            " is below 1 in 100."
        ),
    ),
    "neutral": SignalKind(
        _("many neutral ratings"),
        _(
            "Share of steps rated neutral. Raised above one in ten if it is more than three times that of other"
            " annotators."
        ),
    ),
    "no_errors": SignalKind(
        _("finds few errors"),
        _("Share of traces with an error. Raised if clearly below two thirds of the share of other annotators."),
    ),
    "falling": SignalKind(
        _("declining accuracy"),
        _(
            "Accuracy on hidden gold after the first hour of a session, minus before. Good: 0. Raised if it clearly"
            " falls."
        ),
    ),
}
MAX_REPORTS = 2000  # latest ones of a project
MAX_SUBMISSIONS = 10_000  # about a twentieth is hidden gold, so fewer are not enough for the later hours of sessions
SESSION_GAP_SECONDS = 30 * 60
HOUR_SECONDS = 3600
_FAST_MS, _UNREAD_MS, _UNREAD_WORD_MS = 400, 1500, 100
_MIN_STEPS, _MIN_SUBMISSIONS, _MIN_TRACES, _MIN_GOLD = 30, 20, 10, 10


def compute_signals(*, project_id: int) -> dict[int, dict[str, RaterSignal]]:
    """Return the signals of each rater by kind, as far as there are enough data."""
    by_rater = _group_by_rater(rawsql.fetch_rows(_STEPS, {"project": project_id}))
    declines = _decline_signals(rawsql.fetch_rows(_GOLD, {"project": project_id}))
    counts = np.array([work.counts for work in by_rater.values()], dtype=np.int64).reshape(-1, len(_Counts._fields))
    ends = Counter(end for work in by_rater.values() for end in work.ends)
    signals = {}
    for rater, own in by_rater.items():
        others = _Counts(*(counts.sum(axis=0) - np.array(own.counts)).tolist())
        times = np.array([time for other, work in by_rater.items() if other != rater for time in work.times])
        by_kind = _speed_signals(own) | {"falling": declines.get(rater)}
        if others.submissions:
            by_kind |= _comparison_signals(own, others, times, ends - Counter(own.ends))
        signals[rater] = {kind: signal for kind, signal in by_kind.items() if signal is not None}
    return signals


def list_raised_kinds(signals: Mapping[str, RaterSignal]) -> list[str]:
    return [kind for kind in SIGNAL_KINDS if kind in signals and signals[kind].is_raised]


def signals_as_dicts(signals: Mapping[str, RaterSignal]) -> dict[str, dict[str, Any]]:
    return {kind: asdict(signal) for kind, signal in signals.items()}


def describe_signals(rater_stats: Mapping[str, Any]) -> list[SignalDescription]:
    """Describe the stored signals of one rater, raised ones first."""
    stored = rater_stats.get("signs", {})
    descriptions = [
        SignalDescription(kind, str(words.name), str(words.what), **stored[kind])
        for kind, words in SIGNAL_KINDS.items()
        if kind in stored
    ]
    return sorted(descriptions, key=lambda signal: not signal.is_raised)


class _Counts(NamedTuple):
    """Counts of one rater, or of all others."""

    steps: int
    fast: int
    unread: int
    neutral: int
    submissions: int
    errors: int


@dataclass
class _RaterWork:
    """The submissions of one rater."""

    counts: _Counts
    times: list[float]  # log of milliseconds per word
    ends: list[int | None]  # first errors


def _group_by_rater(rows: Iterable[Sequence[Any]]) -> dict[int, _RaterWork]:
    """Group rows of one submission each."""
    by_rater: dict[int, _RaterWork] = {}
    for rater, first_error, *steps, ms, words in rows:
        work = by_rater.setdefault(rater, _RaterWork(_Counts(0, 0, 0, 0, 0, 0), [], []))
        added = (*steps, 1, int(first_error is not None))
        work.counts = _Counts(*(count + more for count, more in zip(work.counts, added, strict=True)))
        work.ends.append(first_error)
        if ms and words:
            work.times.append(math.log(ms / words))
    return by_rater


def _speed_signals(own: _RaterWork) -> dict[str, RaterSignal | None]:
    counts = own.counts
    return {
        "fast": rater_signals.check_share_below(counts.fast, counts.steps, below=0.2, least=_MIN_STEPS),
        "unread": rater_signals.check_share_below(counts.unread, counts.steps, below=0.5, least=_MIN_STEPS),
    }


def _comparison_signals(
    own: _RaterWork, others: _Counts, times: Floats, ends: Counter[Any]
) -> dict[str, RaterSignal | None]:
    # Compared with the other raters only: a rater with most of the work would otherwise be compared with themselves.
    counts = own.counts
    neutral, errors = _share(others.neutral, others.steps), _share(others.errors, others.submissions)
    usual = {end: n / ends.total() for end, n in ends.items()}
    return {
        "quick": rater_signals.check_speed(np.array(own.times), times, least=_MIN_TRACES),
        "alike": rater_signals.check_longest_run(own.ends, usual, least=_MIN_SUBMISSIONS),
        "neutral": rater_signals.check_share_below(
            counts.neutral, counts.steps, below=max(3 * neutral, 0.1), least=_MIN_STEPS, usual=neutral
        ),
        "no_errors": rater_signals.check_share_reaches(
            counts.errors, counts.submissions, mark=errors * 2 / 3, least=_MIN_SUBMISSIONS, usual=errors
        ),
    }


def _share(part: int, n: int) -> float:
    return part / n if n else 0.0


def _decline_signals(rows: Iterable[Sequence[Any]]) -> dict[int, RaterSignal | None]:
    """Compute signals from rows (rater, seconds since 1970, verdict on hidden gold or None), ordered by both."""
    parts: dict[int, list[list[int]]] = defaultdict(lambda: [[0, 0], [0, 0]])
    rater_before, began, last = None, 0.0, 0.0
    for rater, at, verdict in rows:
        if rater != rater_before or at - last > SESSION_GAP_SECONDS:
            began = at
        rater_before, last = rater, at
        if verdict is not None:
            part = parts[rater][at - began > HOUR_SECONDS]
            part[0] += verdict == "right"
            part[1] += 1
    return {
        rater: rater_signals.check_decline((early[0], early[1]), (late[0], late[1]), least=_MIN_GOLD)
        for rater, (early, late) in parts.items()
    }


_STEPS = f"""
WITH latest AS (
  SELECT r.assignment_id, r.rater_id, r.revision, r.first_error FROM labeling_firsterrorreport r
  WHERE r.project_id = %(project)s ORDER BY r.assignment_id DESC LIMIT {MAX_REPORTS}),
step AS (
  SELECT x.assignment_id, x.rater_id, x.first_error, u.active_ms, j.rating,
    LENGTH(o.text) - LENGTH(REPLACE(o.text, ' ', '')) + 1 AS words
  FROM latest x
  JOIN labeling_stepreview u ON u.assignment_id = x.assignment_id AND u.revision = x.revision
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id AND o.position = 0)
SELECT rater_id, first_error, COUNT(*), COUNT(CASE WHEN active_ms < {_FAST_MS} THEN 1 END),
  COUNT(CASE WHEN active_ms < {_UNREAD_MS} OR active_ms < {_UNREAD_WORD_MS} * words THEN 1 END),
  COUNT(CASE WHEN rating = 0 THEN 1 END), SUM(active_ms), SUM(words)
FROM step GROUP BY assignment_id, rater_id, first_error ORDER BY assignment_id"""  # noqa: S608  our own numbers

_GOLD = f"""
WITH latest AS (
  SELECT a.id, a.rater_id, a.submitted_at FROM labeling_assignment a
  WHERE a.project_id = %(project)s AND a.state = 'submitted' AND a.submitted_at IS NOT NULL
  ORDER BY a.submitted_at DESC LIMIT {MAX_SUBMISSIONS})
SELECT x.rater_id, EXTRACT(EPOCH FROM x.submitted_at)::double precision, g.verdict FROM latest x
LEFT JOIN labeling_goldanswer g ON g.assignment_id = x.id AND g.use = 'hidden'
ORDER BY x.rater_id, x.submitted_at, x.id"""  # noqa: S608  our own number
