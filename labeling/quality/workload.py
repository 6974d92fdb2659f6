"""What each rater did and how it stands to gold, to the consensus and to others; what the project came to. Reads only.

How a rater stands to the consensus is told with their own vote in it: it is for seeing who differs from where the
project went, gold is for seeing who is right.
"""

import datetime as dt
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from django.db.models import Count

from labeling.agreement import proportions, sequential
from labeling.agreement.result import Reason
from labeling.models import Gold, GoldAnswer, Project, ReportCount
from labeling.models.quality import GoldUse, Verdict
from labeling.quality import arrivals, bias, confusions, consensus, flags, standings, watching, workdays
from labeling.quality.tallied import Meetings

MONTH = dt.timedelta(days=30)


def of_project(*, project_id: int, meetings: Meetings, now: dt.datetime) -> dict[str, Any]:
    return {
        "raters": _raters(project_id, meetings),
        "confusion": confusions.of_project(project_id),
        "settlements": standings.by_state(project_id),
        "settled": _settled(project_id),
        "days": workdays.by_day(project_id),
        "watching": _watching(project_id, now),
        "bias": bias.of_project(project_id),
        "settled_days": standings.by_day(project_id),
    }


def _raters(project_id: int, meetings: Meetings) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for each in standings.by_rater(project_id):
        row = found[str(each.rater_id)]
        row |= {"readings": each.readings, "steps": each.steps, "active_ms": 0, "paid_ms": 0}
        if each.compared:
            row["consensus"] = _against_consensus(each)
    for rater, (active, paid) in workdays.by_rater(project_id).items():
        found[str(rater)] |= {"active_ms": active, "paid_ms": paid}
    for part, rows in (("gold", _gold(project_id)), ("others", _with_others(meetings))):
        for rater, told in rows.items():
            found[str(rater)][part] = told
    for rater, signs in flags.of_project(project_id=project_id).items():
        found[str(rater)] |= {"flags": flags.raised(signs), "signs": flags.plain(signs)}
    return dict(found)


def _against_consensus(count: ReportCount) -> dict[str, int]:
    right, missed = max(0, count.same), max(0, count.missed)
    blamed = max(0, count.compared - right - missed)
    return {"n": right + missed + blamed, "right": right, "missed": missed, "blamed": blamed}


def _gold(project_id: int) -> dict[int, dict[str, Any]]:
    answers = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN)
    counted: dict[int, Counter[str]] = defaultdict(Counter)
    for rater, verdict, n in answers.values_list("rater_id", "verdict").annotate(Count("pk")):
        counted[rater][verdict] = n
    return {rater: _accuracy(verdicts) for rater, verdicts in counted.items()}


def _accuracy(verdicts: Counter[str]) -> dict[str, Any]:
    n, right = verdicts.total(), verdicts[Verdict.RIGHT]
    around = proportions.wilson(right=right, n=n)
    return {"n": n, **{v.value: verdicts[v] for v in Verdict}, "low": around.low, "high": around.high}


def _with_others(meetings: Meetings) -> dict[int, dict[str, int]]:
    """In how many of the traces read with somebody else both saw the first error at the same place."""
    met = meetings.is_read_twice & ~meetings.is_censored.any(axis=1)
    raters, place = np.unique(meetings.raters[met], return_inverse=True)
    is_same = np.repeat(meetings.ends[met, 0] == meetings.ends[met, 1], 2)
    pairs = np.bincount(place.ravel(), minlength=len(raters))
    same = np.bincount(place.ravel(), weights=is_same, minlength=len(raters)).astype(np.int64)
    counted = zip(raters.tolist(), pairs.tolist(), same.tolist(), strict=True)
    return {rater: {"pairs": n, "same": agreeing} for rater, n, agreeing in counted}


def _settled(project_id: int) -> dict[str, int]:
    traces, steps = standings.settled(project_id)
    unsettled = Gold.objects.active().filter(trace__project=project_id)
    unsettled = unsettled.exclude(trace__settlement__state__in=consensus.STANDING)  # a consensus can become gold
    gold = unsettled.values("trace").distinct().count()
    every = arrivals.count(project_id=project_id)
    return {"traces": traces, "steps": steps, "of": max(every - gold, 0)}


def _watching(project_id: int, now: dt.datetime) -> dict[str, Any]:
    """The project's bar, or why there is none; and how many of a hundred raters who reach it exactly would be paused in
    their first month, at the gold of the last: the price of watching."""
    bar = Project.objects.get(pk=project_id).gold_bar
    month = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN, answered_at__gte=now - MONTH)
    seen = month.aggregate(n=Count("pk"), raters=Count("rater", distinct=True))
    a_rater = round(seen["n"] / seen["raters"]) if seen["raters"] else 0
    paused = sequential.false_pauses(plan=sequential.plan(p0=bar), gold=a_rater) if bar and a_rater else None
    reason = watching.starting_point(project_id=project_id) if bar is None else None
    screens = watching.screens(project_id=project_id)
    return {
        "bar": bar,
        "reason": reason if isinstance(reason, Reason) else None,
        "screens": screens,
        "gold_a_rater": a_rater,
        "false_pauses": paused,
    }
