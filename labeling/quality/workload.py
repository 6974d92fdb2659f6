"""What each rater did and how it stands to gold, to the consensus and to others; what the project came to. Reads only.

How a rater stands to the consensus is told with their own vote in it: it is for seeing who differs from where the
project went, gold is for seeing who is right.
"""

import datetime as dt
from collections import Counter, defaultdict
from typing import Any

from django.db.models import Case, Count, F, Q, Sum, When
from django.db.models.functions import TruncDate

import statements
from labeling.agreement import proportions, sequential
from labeling.agreement.result import Reason
from labeling.models import Gold, GoldAnswer, Project, Report, Settlement, Trace
from labeling.models.quality import GoldUse, Verdict
from labeling.quality import bias, confusions, consensus, flags, watching, workdays
from labeling.quality.populations import Meetings

MONTH = dt.timedelta(days=30)


def of_project(*, project_id: int, meetings: Meetings, now: dt.datetime) -> dict[str, Any]:
    return {
        "raters": _raters(project_id, meetings),
        "confusion": confusions.of_project(project_id),
        "settlements": _settlements(project_id),
        "settled": _settled(project_id),
        "days": workdays.by_day(project_id),
        "watching": _watching(project_id, now),
        "bias": bias.of_project(project_id),
        "settled_days": _settled_days(project_id),
    }


def _raters(project_id: int, meetings: Meetings) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    reports = Report.objects.filter(project_id=project_id)
    for rater, readings, passed, errors in reports.values_list("rater_id").annotate(
        Count("pk"), Sum("n_passed"), Count("first_error")
    ):
        found[str(rater)] |= {"readings": readings, "steps": passed + errors, "active_ms": 0, "paid_ms": 0}
    for rater, (active, paid) in workdays.by_rater(project_id).items():
        found[str(rater)] |= {"active_ms": active, "paid_ms": paid}
    for part, rows in (
        ("gold", _gold(project_id)),
        ("consensus", _against_consensus(project_id)),
        ("others", _with_others(meetings)),
    ):
        for rater, told in rows.items():
            found[str(rater)][part] = told
    for rater, signs in flags.of_project(project_id=project_id).items():
        found[str(rater)] |= {"flags": flags.raised(signs), "signs": flags.plain(signs)}
    return dict(found)


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


def _against_consensus(project_id: int) -> dict[int, dict[str, int]]:
    """Reports that were not cut off, held against the places that the project stands behind. What one reading alone
    has settled is left out: held against itself it is always right."""
    rows = statements.rows(_AGAINST_CONSENSUS, [project_id])
    return {
        rater: {"n": n, "right": right, "missed": missed, "blamed": n - right - missed}
        for rater, n, right, missed in rows
    }


_AGAINST_CONSENSUS = """
SELECT r.rater_id, COUNT(*),
  COUNT(CASE WHEN r.first_error = c.first_error OR (r.first_error IS NULL AND c.first_error IS NULL) THEN 1 END),
  COUNT(CASE WHEN c.first_error IS NOT NULL AND (r.first_error IS NULL OR r.first_error > c.first_error) THEN 1 END)
FROM labeling_report r
JOIN labeling_settlement s ON s.trace_id = r.trace_id AND s.state IN ('settled', 'decided')
JOIN labeling_consensus c ON c.trace_id = r.trace_id AND c.revision = s.consensus_revision
  AND (c.n_votes > 1 OR c.source <> 'raters')
WHERE r.project_id = %s AND NOT r.is_censored
GROUP BY r.rater_id"""


def _with_others(meetings: Meetings) -> dict[int, dict[str, int]]:
    """In how many of the traces read with somebody else both saw the first error at the same place."""
    met = (meetings.ends[:, 1] >= 0) & ~meetings.is_censored.any(axis=1)
    same = meetings.ends[:, 0] == meetings.ends[:, 1]
    pairs: Counter[int] = Counter(meetings.raters[met].ravel().tolist())
    agreeing: Counter[int] = Counter(meetings.raters[met & same].ravel().tolist())
    return {rater: {"pairs": n, "same": agreeing[rater]} for rater, n in pairs.items()}


def _settlements(project_id: int) -> dict[str, int]:
    return dict(Settlement.objects.filter(project_id=project_id).values_list("state").annotate(Count("pk")))


def _settled(project_id: int) -> dict[str, int]:
    found = consensus.current(project_id=project_id)
    sound, wrong = found.filter(first_error=None), found.filter(first_error__isnull=False)
    steps = sound.aggregate(n=Sum("trace__n_steps"))["n"] or 0
    steps += wrong.aggregate(n=Sum(F("first_error") + 1))["n"] or 0
    gold = Gold.objects.filter(trace__project=project_id, retired_at=None).values("trace").distinct().count()
    every = Trace.objects.filter(project=project_id, withdrawn_at=None).count()
    return {"traces": found.count(), "steps": steps, "of": max(every - gold, 0)}


def _settled_days(project_id: int) -> list[dict[str, Any]]:
    """How many traces came to an end of their readings each day, how many of them contested, and the settled steps."""
    ended = Settlement.objects.filter(project_id=project_id, state__in=["settled", "contested", "decided"])
    by_day = ended.annotate(day=TruncDate("changed_at")).values_list("day")
    counted = by_day.annotate(n=Count("pk"), contested=Count("pk", filter=Q(state="contested"))).order_by("day")
    by_trace = consensus.current(project_id=project_id)
    current = by_trace.annotate(day=TruncDate("trace__settlement__changed_at")).values_list("day")
    length = Case(When(first_error=None, then=F("trace__n_steps")), default=F("first_error") + 1)
    steps = dict(current.annotate(n=Sum(length)).order_by())
    return [
        {"day": day.isoformat(), "settled": n, "contested": contested, "steps": steps.get(day) or 0}
        for day, n, contested in counted
    ]


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
