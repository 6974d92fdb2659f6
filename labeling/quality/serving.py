"""Hands known traces out: on the way in to everybody, hidden among the work to so many that it is not known by heart.
Alone puts gold into its lanes, and says in which order hidden gold is met."""

import datetime as dt
from collections.abc import Sequence

from labeling import queue
from labeling.agreement import strata
from labeling.agreement.strata import Known
from labeling.models import Gold
from labeling.models.quality import GoldUse
from labeling.models.queue import Arm
from labeling.quality.gold import WORN_OUT_AFTER

# Every rater gets every trace of a set: no number of raters uses it up.
ENDLESS = 30_000
_WORK = (Arm.UNIFORM, Arm.POLICY, Arm.RESERVE, Arm.TOP_UP, Arm.OPINION)
_LANES = {
    GoldUse.TRAINING.value: (Arm.TRAINING, ENDLESS),
    GoldUse.SCREENING.value: (Arm.SCREENING, ENDLESS),
    GoldUse.HIDDEN.value: (Arm.GOLD, WORN_OUT_AFTER),
}


def hand_out(*, project_id: int, use: str, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Gold of this use is handed out from now on, a set in the order given, and is no longer work itself. A canary is
    handed to nobody. Says how many traces are new in their lane."""
    for arm in _WORK:
        queue.take_out(project_id=project_id, arm=arm, trace_ids=trace_ids, now=now)
    if use not in _LANES:
        return 0
    arm, slots = _LANES[use]
    return queue.enqueue(project_id=project_id, arm=arm, trace_ids=trace_ids, slots=slots, now=now)


def arrange_hidden(*, project_id: int, now: dt.datetime) -> int:
    """Hidden gold is met so that every few traces of it have as many without an error as with one early, in the middle
    and late, and all domains: in the order of the pool, who sees no errors anywhere would be right for long stretches.
    Gold that is made by day is shuffled in and finds its place by night. Says how many traces found another place."""
    rows = Gold.objects.active().filter(trace__project=project_id, use=GoldUse.HIDDEN)
    columns = ("trace_id", "trace__problem_id", "accepted_first_errors", "trace__n_steps", "trace__problem__domain")
    known = [
        Known(trace, problem, strata.place_of(accepted, n_steps), domain)
        for trace, problem, accepted, n_steps, domain in rows.values_list(*columns)
    ]
    order = [each.trace for each in strata.spread(known, seed=f"project {project_id} gold")]
    return queue.arrange(project_id=project_id, arm=Arm.GOLD, trace_ids=order, now=now)
