"""Watches how raters meet hidden gold, and pauses whose work must be looked at. Never bans: a lead lets them go on.

Wald's test in the first 60 gold traces, a CUSUM afterwards, against the project's own bar: the 25th percentile of what
its raters reach. A fixed bar would pause nearly everybody where traces are hard. No bar, no watching.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from labeling import raters
from labeling.models import GoldAnswer, Project, QueueEntry, ScreeningResult
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.models.queue import SamplingSource
from labeling.projects import lifecycle
from labeling.quality import gold_scoring, signals
from stats import sequential_tests
from stats.estimates import Reason

TRUSTED_AFTER = dt.timedelta(days=14)  # after which a rater who works is known: `Project.proven_gold_share`
MAX_BASELINE_ANSWERS = 5000  # gold answers that are looked through for five raters
_LOWEST, _HIGHEST = 0.2, 0.99


class SignalDescription(NamedTuple):
    """One sign of a rater as a page shows it: what it is and what is good, its figure, and whether it is raised."""

    kind: str
    name: str
    what: str
    value: float
    low: float
    high: float
    n: int
    usual: float | None
    is_raised: bool


def describe_signals(told: Mapping[str, Any]) -> list[SignalDescription]:
    """The signs of one rater in words, those that are raised first; `told` is that rater's part of the figures. A kind
    of which too little is known is not there."""
    known = told.get("signs", {})
    found = [
        SignalDescription(kind, str(words.name), str(words.what), **known[kind])
        for kind, words in signals.SIGNAL_KINDS.items()
        if kind in known
    ]
    return sorted(found, key=lambda sign: not sign.is_raised)


def record_gold_answer(*, assignment_id: int, now: dt.datetime) -> GoldAnswer | None:
    """A trace with a known answer was submitted: score it, and look at the rater where it was hidden. Inside the
    transaction of the submit. None where the trace is not gold (any more)."""
    answer = gold_scoring.score_gold_answer(assignment_id=assignment_id, now=now)
    if answer is not None:
        pause_if_below_threshold(answer=answer, now=now)
    return answer


def pause_if_below_threshold(*, answer: GoldAnswer, now: dt.datetime) -> bool:
    """A rater has met one more hidden gold trace. Says whether that paused them."""
    bar = answer.project.gold_bar
    if answer.use != GoldUse.HIDDEN or bar is None or answer.rater.paused_at is not None:
        return False
    right = _load_answers_since_resumed(answer)
    if sequential_tests.find_pause(right, sequential_tests.make_plan(p0=bar)) is None:
        return False
    note = _("%(right)d of %(n)d hidden gold traces right, where %(bar)d %% are expected.") % {
        "right": sum(right),
        "n": len(right),
        "bar": round(100 * bar),
    }
    return raters.pause_rater(rater=answer.rater, reason=_pause_reason(), note=note, by=None, now=now)


def _pause_reason() -> str:
    return _(
        "some recent ratings differ from what the guideline asks for, and a lead would like to go through it with you"
        " first. All your work is kept and counts."
    )


def _load_answers_since_resumed(answer: GoldAnswer) -> list[bool]:
    """In the order of the answers, from where the rater was last let go on."""
    rows = GoldAnswer.objects.filter(rater=answer.rater_id, use=GoldUse.HIDDEN)
    if answer.rater.watched_since_at is not None:
        rows = rows.filter(answered_at__gt=answer.rater.watched_since_at)
    return [
        verdict == GoldVerdict.RIGHT for verdict in rows.order_by("answered_at", "pk").values_list("verdict", flat=True)
    ]


def mark_trusted_raters(*, project_id: int, now: dt.datetime) -> int:
    """Whoever has worked for a fortnight, or since they were let go on, meets less gold from now on: one step, and in
    the log. Says how many."""
    return raters.mark_trusted(project_id=project_id, since=now - TRUSTED_AFTER, now=now)


def set_gold_threshold(*, project: Project, now: dt.datetime) -> float | None:
    """Set the bar from the project's first gold answers, once there are enough of enough raters."""
    if project.gold_bar is not None:
        return None
    found = measure_baseline_accuracy(project_id=project.pk)
    if not isinstance(found, float):
        return None
    bar = min(max(found, _LOWEST), _HIGHEST)
    lifecycle.set_gold_threshold(project=project, bar=bar, by=None, now=now)
    return bar


def measure_baseline_accuracy(*, project_id: int) -> float | Reason:
    """What raters reach who passed the project's screening: whoever was let in without it, or before it was put up,
    says nothing of where the bar shall be. In a project that screens nobody all raters count."""
    rows = GoldAnswer.objects.filter(project=project_id, use=GoldUse.HIDDEN).order_by("answered_at", "pk")
    if uses_screening(project_id=project_id):
        passed = ScreeningResult.objects.filter(rater=OuterRef("rater"), has_passed=True)
        rows = rows.filter(Exists(passed))
    first = list(rows.values_list("rater_id", "verdict")[:MAX_BASELINE_ANSWERS])
    return sequential_tests.baseline_accuracy(
        raters=[rater for rater, _verdict in first], right=[verdict == GoldVerdict.RIGHT for _rater, verdict in first]
    )


def uses_screening(*, project_id: int) -> bool:
    """A screening set is in use, or somebody has been through one."""
    served = QueueEntry.objects.open().filter(lane__project=project_id, lane__arm=SamplingSource.SCREENING)
    return served.exists() or ScreeningResult.objects.filter(rater__project=project_id).exists()
