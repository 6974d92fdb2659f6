"""Watches how raters meet hidden gold, and pauses whose work must be looked at. Never bans: a lead lets them go on.

Wald's test in the first 60 gold traces, a CUSUM afterwards, against the project's own bar: the 25th percentile of what
its raters reach. A fixed bar would pause nearly everybody where traces are hard. No bar, no watching.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from labeling import projects, raters
from labeling.agreement import sequential
from labeling.agreement.result import Reason
from labeling.models import GoldAnswer, Project, QueueEntry, ScreeningResult
from labeling.models.quality import GoldUse, Verdict
from labeling.models.queue import Arm
from labeling.quality import flags, scoring

FORTNIGHT = dt.timedelta(days=14)  # after which a rater who works is known: `Project.proven_gold_share`
MOST = 5000  # gold answers that are looked through for five raters
_LOWEST, _HIGHEST = 0.2, 0.99


class Shown(NamedTuple):
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


def signs(told: Mapping[str, Any]) -> list[Shown]:
    """The signs of one rater in words, those that are raised first; `told` is that rater's part of the figures. A kind
    of which too little is known is not there."""
    known = told.get("signs", {})
    found = [
        Shown(kind, str(words.name), str(words.what), **known[kind])
        for kind, words in flags.KINDS.items()
        if kind in known
    ]
    return sorted(found, key=lambda sign: not sign.is_raised)


def meet_gold(*, assignment_id: int, now: dt.datetime) -> GoldAnswer | None:
    """A trace with a known answer was submitted: score it, and look at the rater where it was hidden. Inside the
    transaction of the submit. None where the trace is not gold (any more)."""
    answer = scoring.score(assignment_id=assignment_id, now=now)
    if answer is not None:
        watch(answer=answer, now=now)
    return answer


def watch(*, answer: GoldAnswer, now: dt.datetime) -> bool:
    """A rater has met one more hidden gold trace. Says whether that paused them."""
    bar = answer.project.gold_bar
    if answer.use != GoldUse.HIDDEN or bar is None or answer.rater.paused_at is not None:
        return False
    right = _right_since(answer)
    if sequential.paused_at(right, sequential.plan(p0=bar)) is None:
        return False
    note = _("%(right)d of %(n)d hidden gold traces right, where %(bar)d %% are expected.") % {
        "right": sum(right),
        "n": len(right),
        "bar": round(100 * bar),
    }
    return raters.pause(rater=answer.rater, reason=_kindly(), note=note, by=None, now=now)


def _kindly() -> str:
    return _(
        "some recent ratings differ from what the guideline asks for, and a lead would like to go through it with you"
        " first. All your work is kept and counts."
    )


def _right_since(answer: GoldAnswer) -> list[bool]:
    """In the order of the answers, from where the rater was last let go on."""
    rows = GoldAnswer.objects.filter(rater=answer.rater_id, use=GoldUse.HIDDEN)
    if answer.rater.watched_since_at is not None:
        rows = rows.filter(answered_at__gt=answer.rater.watched_since_at)
    return [
        verdict == Verdict.RIGHT for verdict in rows.order_by("answered_at", "pk").values_list("verdict", flat=True)
    ]


def prove(*, project_id: int, now: dt.datetime) -> int:
    """Whoever has worked for a fortnight, or since they were let go on, meets less gold from now on: one step, and in
    the log. Says how many."""
    return raters.prove(project_id=project_id, since=now - FORTNIGHT, now=now)


def measure_bar(*, project: Project, now: dt.datetime) -> float | None:
    """Set the bar from the project's first gold answers, once there are enough of enough raters."""
    if project.gold_bar is not None:
        return None
    found = starting_point(project_id=project.pk)
    if not isinstance(found, float):
        return None
    bar = min(max(found, _LOWEST), _HIGHEST)
    projects.set_gold_bar(project=project, bar=bar, by=None, now=now)
    return bar


def starting_point(*, project_id: int) -> float | Reason:
    """What raters reach who passed the project's screening: whoever was let in without it, or before it was put up,
    says nothing of where the bar shall be. In a project that screens nobody all raters count."""
    rows = GoldAnswer.objects.filter(project=project_id, use=GoldUse.HIDDEN).order_by("answered_at", "pk")
    if screens(project_id=project_id):
        passed = ScreeningResult.objects.filter(rater=OuterRef("rater"), has_passed=True)
        rows = rows.filter(Exists(passed))
    first = list(rows.values_list("rater_id", "verdict")[:MOST])
    return sequential.starting_point(
        raters=[rater for rater, _verdict in first], right=[verdict == Verdict.RIGHT for _rater, verdict in first]
    )


def screens(*, project_id: int) -> bool:
    """A screening set is in use, or somebody has been through one."""
    served = QueueEntry.objects.open().filter(lane__project=project_id, lane__arm=Arm.SCREENING)
    return served.exists() or ScreeningResult.objects.filter(rater__project=project_id).exists()
