"""Brings the turns of a revision into the form in which they are submitted.

Under the first-error protocol nothing after the first negative is part of a submission: ratings that the rater had
made there before finding the error leave the revision. They stay in the history."""

import datetime as dt

from labeling import protocols
from labeling.judging import keeping
from labeling.judging.standing import Standing, TurnRow
from labeling.models import Judgment, Turn


def close(*, standing: Standing, now: dt.datetime) -> None:
    """Say of each turn what was shown and where the path went on, and drop what lies behind the first error."""
    end = protocols.ends_at(standing.facts.protocol, standing.rated())
    kept = {position: turn for position, turn in standing.turns.items() if end is None or position <= end}
    if len(kept) < len(standing.turns):
        _drop(standing, end)
    changed = {position: _closed(standing, position, end) for position in kept}
    keeping.correct(
        standing=standing, turns={at: turn for at, turn in changed.items() if turn != standing.turns[at]}, now=now
    )


def _closed(standing: Standing, position: int, end: int | None) -> TurnRow:
    """On a path that stood before it was rated, the way goes on with the trace's own option, except where it ends."""
    turn, step = standing.turns[position], standing.steps[position]
    if not (standing.is_pregenerated and step.is_rateable and step.options):
        return turn
    has_alternatives = any((position, option) in standing.judgments for option in range(1, len(step.options)))
    own_only = position != end and not has_alternatives and turn.shown in (None, "0")
    shown = "0" if own_only else " ".join(str(option) for option in range(len(step.options)))
    return turn._replace(shown=shown, chosen=None if position == end else 0)


def _drop(standing: Standing, end: int | None) -> None:
    behind = Turn.objects.filter(
        assignment_id=standing.facts.assignment, revision=standing.facts.revision, step__position__gt=end
    )
    Judgment.objects.filter(turn__in=behind).delete()
    behind.delete()
