"""Signals that a rater's work deserves a review. They inform leads, and never pause anyone.

Computed from the latest submissions of a project, without those that were set aside. Each signal has a value, an
interval and the usual value; a flag is a raised signal. Holding a key down rates only one step, so fast steps are
deliberate.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

import rawsql
from stats import rater_signals
from stats.arrays import Floats
from stats.rater_signals import RaterSignal


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
    n_false: int  # of `N_SIMULATED` honest annotators, how many the signal is raised for


# The name and description of each signal.
SIGNAL_KINDS: dict[str, tuple[Promise, Promise]] = {
    "fast": (
        _("many fast steps"),
        _(
            "Share of steps rated in less than 0.4 seconds, in traces read at more than ten words per second. Good:"
            " none. Flagged above one in five."
        ),
    ),
    "unread": (
        _("faster than reading"),
        _(
            "Share of steps rated in less than 1.5 seconds, or at more than ten words per second, in traces read at"
            " more than ten words per second. Good: few. Flagged above one in two."
        ),
    ),
    "quick": (
        _("quick traces"),
        _("Time per word compared with other annotators, in standard deviations. Good: near 0. Flagged below −2.5."),
    ),
    "alike": (
        _("repetitive results"),
        _(
            "Longest run of traces with the same first error. Good: short runs. Flagged if the run has at least"
            " five traces and would occur by chance less than 1 time in 100."
        ),
    ),
    "neutral": (
        _("many neutral ratings"),
        _(
            "Share of steps rated neutral. Flagged if above one in ten and more than three times the share for"
            " other annotators."
        ),
    ),
    "no_errors": (
        _("finds few errors"),
        _("Share of traces with an error. Flagged if clearly below two-thirds of the share for other annotators."),
    ),
    "falling": (
        _("declining accuracy"),
        _(
            "Accuracy on hidden gold after the first hour of a session, minus accuracy before that. Good:"
            " near 0. Flagged if clearly below 0."
        ),
    ),
}
# For how many of so many simulated honest annotators each flag is raised: `bench.flags`.
N_SIMULATED = 1100
FALSE_FLAGS = {
    "fast": 0,
    "unread": 0,
    "quick": 1,
    "alike": 11,
    "neutral": 1,
    "no_errors": 1,
    "falling": 8,
    "missed_errors": 0,
    "false_alarms": 9,
    "below_gold_threshold": 1,
}
MAX_REPORTS = 2000  # latest ones of a project
MAX_SUBMISSIONS = 10_000  # about a twentieth is hidden gold, so fewer are not enough for the later hours of sessions
SESSION_GAP_SECONDS = 30 * 60
HOUR_SECONDS = 3600
UNREAD_MS, UNREAD_WORD_MS = 1500, 100
_MIN_STEPS, _MIN_SUBMISSIONS, _MIN_TRACES, _MIN_GOLD = 30, 20, 10, 10
_MIN_RATERS = 3


class SubmissionRow(NamedTuple):
    """What one of the latest submissions took; `fast` and `unread` are counts of steps."""

    assignment_id: int
    rater_id: int
    first_error: int | None
    steps: int
    fast: int
    unread: int
    neutral: int
    ms: int | None
    words: int | None

    @property
    def is_timed(self) -> bool:
        return bool(self.ms and self.words)

    @property
    def is_skimmed(self) -> bool:
        """Whether the whole trace was faster than reading. Some people read all of it first and then rate fast."""
        return self.is_timed and (self.ms or 0) < UNREAD_WORD_MS * (self.words or 0)

    @property
    def is_impossible(self) -> bool:
        """Whether it was faster than anyone can read."""
        return self.is_timed and rater_signals.is_faster_than_reading(
            ms=self.ms or 0, words=self.words or 0, n_fast=self.fast, n_steps=self.steps
        )


def load_submission_rows(*, project_id: int) -> list[SubmissionRow]:
    return list(itertools.starmap(SubmissionRow, rawsql.fetch_rows(_STEPS, {"project": project_id})))


def compute_signals(
    *, project_id: int, submissions: Sequence[SubmissionRow] | None = None
) -> dict[int, dict[str, RaterSignal]]:
    """Return the signals of each rater by kind, if there are enough data for them."""
    rows = load_submission_rows(project_id=project_id) if submissions is None else submissions
    return assess_submissions(rows, rawsql.fetch_rows(_GOLD, {"project": project_id}))


def assess_submissions(
    rows: Iterable[SubmissionRow], answers: Iterable[Sequence[Any]]
) -> dict[int, dict[str, RaterSignal]]:
    """Compute the signals from submissions, and from the times of all submissions with the verdicts on hidden gold."""
    by_rater = _group_by_rater(rows)
    declines = _decline_signals(answers)
    counts = sum((work.counts for work in by_rater.values()), Counter[str]())
    ends = Counter(end for work in by_rater.values() for end in work.ends)
    signals = {}
    for rater, own in by_rater.items():
        others = counts - own.counts
        times = np.array([time for other, work in by_rater.items() if other != rater for time in work.times])
        by_kind = _speed_signals(own) | {"falling": declines.get(rater)}
        if others["submissions"]:
            by_kind |= _comparison_signals(own, others, times, ends - Counter(own.ends))
        signals[rater] = {kind: signal for kind, signal in by_kind.items() if signal is not None}
    return {rater: _lower_common(by_kind, signals) for rater, by_kind in signals.items()}


def _lower_common(
    by_kind: dict[str, RaterSignal], signals: Mapping[int, Mapping[str, RaterSignal]]
) -> dict[str, RaterSignal]:
    """A signal that most raters have says something about the project, not about the rater: it is not raised."""
    lowered = {}
    for kind, signal in by_kind.items():
        raised = [own[kind].is_raised for own in signals.values() if kind in own]
        is_common = len(raised) >= _MIN_RATERS and 2 * sum(raised) > len(raised)
        lowered[kind] = replace(signal, is_raised=signal.is_raised and not is_common)
    return lowered


def list_raised_kinds(signals: Mapping[str, RaterSignal]) -> list[str]:
    return [kind for kind in SIGNAL_KINDS if kind in signals and signals[kind].is_raised]


def describe_signals(rater_stats: Mapping[str, Any]) -> list[SignalDescription]:
    """Describe the stored signals of one rater, raised ones first."""
    stored = rater_stats.get("signs", {})
    descriptions = [
        SignalDescription(kind, str(name), str(what), **stored[kind], n_false=FALSE_FLAGS[kind])
        for kind, (name, what) in SIGNAL_KINDS.items()
        if kind in stored
    ]
    return sorted(descriptions, key=lambda signal: not signal.is_raised)


@dataclass
class _RaterWork:
    """The submissions of one rater."""

    counts: Counter[str] = field(default_factory=Counter)  # of steps and of submissions
    times: list[float] = field(default_factory=list)  # log of milliseconds per word
    ends: list[int | None] = field(default_factory=list)  # first errors


def _group_by_rater(rows: Iterable[SubmissionRow]) -> dict[int, _RaterWork]:
    """Group the rows, one per submission, by rater."""
    by_rater: dict[int, _RaterWork] = defaultdict(_RaterWork)
    for row in rows:
        work = by_rater[row.rater_id]
        fast, unread = (row.fast, row.unread) if row.is_skimmed else (0, 0)
        work.counts += Counter(steps=row.steps, fast=fast, unread=unread, neutral=row.neutral)
        work.counts += Counter(submissions=1, errors=int(row.first_error is not None))
        work.ends.append(row.first_error)
        if row.ms and row.words:
            work.times.append(math.log(row.ms / row.words))
    return by_rater


def _speed_signals(own: _RaterWork) -> dict[str, RaterSignal | None]:
    n, counts = own.counts["steps"], own.counts
    return {
        "fast": rater_signals.check_share_below(counts["fast"], n, below=0.2, least=_MIN_STEPS),
        "unread": rater_signals.check_share_below(counts["unread"], n, below=0.5, least=_MIN_STEPS),
    }


def _comparison_signals(
    own: _RaterWork, others: Counter[str], times: Floats, ends: Counter[Any]
) -> dict[str, RaterSignal | None]:
    # Compared with the other raters only: a rater with most of the work would otherwise be compared with themselves.
    counts = own.counts
    neutral = _share(others["neutral"], others["steps"])
    errors = _share(others["errors"], others["submissions"])
    usual = {end: n / ends.total() for end, n in ends.items()}
    return {
        "quick": rater_signals.check_speed(np.array(own.times), times, least=_MIN_TRACES),
        "alike": rater_signals.check_longest_run(own.ends, usual, least=_MIN_SUBMISSIONS),
        "neutral": rater_signals.check_share_below(
            counts["neutral"], counts["steps"], below=max(3 * neutral, 0.1), least=_MIN_STEPS, usual=neutral
        ),
        "no_errors": rater_signals.check_share_reaches(
            counts["errors"], counts["submissions"], mark=errors * 2 / 3, least=_MIN_SUBMISSIONS, usual=errors
        ),
    }


def _share(part: int, n: int) -> float:
    return part / n if n else 0.0


def _decline_signals(rows: Iterable[Sequence[Any]]) -> dict[int, RaterSignal | None]:
    """Compute signals from rows (rater, seconds since 1970, verdict on hidden gold or None), ordered by the first
    two."""
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
  SELECT r.assignment_id, r.rater_id, r.revision, r.first_error
  FROM labeling_firsterrorreport r JOIN labeling_assignment a ON a.id = r.assignment_id
  WHERE r.project_id = %(project)s AND a.set_aside_id IS NULL ORDER BY r.assignment_id DESC LIMIT {MAX_REPORTS}),
step AS (
  SELECT x.assignment_id, x.rater_id, x.first_error, u.active_ms, j.rating,
    LENGTH(o.text) - LENGTH(REPLACE(o.text, ' ', '')) + 1 AS words
  FROM latest x
  JOIN labeling_stepreview u ON u.assignment_id = x.assignment_id AND u.revision = x.revision
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id AND o.position = 0)
SELECT assignment_id, rater_id, first_error, COUNT(*), COUNT(CASE WHEN active_ms < {rater_signals.FAST_MS} THEN 1 END),
  COUNT(CASE WHEN active_ms < {UNREAD_MS} OR active_ms < {UNREAD_WORD_MS} * words THEN 1 END),
  COUNT(CASE WHEN rating = 0 THEN 1 END), SUM(active_ms), SUM(words)
FROM step GROUP BY assignment_id, rater_id, first_error ORDER BY assignment_id"""  # noqa: S608  our own numbers

_GOLD = f"""
WITH latest AS (
  SELECT a.id, a.rater_id, a.submitted_at FROM labeling_assignment a
  WHERE a.project_id = %(project)s AND a.state = 'submitted' AND a.submitted_at IS NOT NULL AND a.set_aside_id IS NULL
  ORDER BY a.submitted_at DESC LIMIT {MAX_SUBMISSIONS})
SELECT x.rater_id, EXTRACT(EPOCH FROM x.submitted_at)::double precision, g.verdict FROM latest x
LEFT JOIN labeling_goldanswer g ON g.assignment_id = x.id AND g.use = 'hidden'
ORDER BY x.rater_id, x.submitted_at, x.id"""  # noqa: S608  our own number
