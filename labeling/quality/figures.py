"""Computes the figures of a project and keeps them for whoever shows them. Alone writes figures and daily figures.

`read(project_id=...)` gives what was computed last, as a `Shown`; its `content` has, all of it plain JSON:

    headline     {"steps": {statistic: ESTIMATE}, "first_error": {"exact", "within_one", "has_error_kappa": ESTIMATE,
                 "pairs", "pairs_with_a_censored_report"}, "labels": {"-1": share, "0": …, "1": …},
                 "n_traces", "n_traces_read_twice", "is_audit_slice"}: of all traces that were read, or of the
                 audit slice where a policy has chosen some
    everything   as a slice: of every trace that was read, where the headline is of the audit slice; else null
    domain, generation, guideline, step_kind
                 lists of {"key", "steps", "first_error", "n_traces"}; guideline 0 is none, -1 two. Of a kind of step
                 "first_error" is over traces in which either saw it at such a step: "exact" and "within_one" alone
    pair         list of {"raters": [id, id], "steps", "first_error"}, those with most in common first
    position     list of {"step", "n", "agree", "low", "high", "interval_reason", "n_problems", "both", "one"} over
                 rateable steps from 0: pairs of readings that had both come so far, the share that says the same of it
                 with its interval by problem, how often both or one alone call it wrong
    raters       {rater id: {"readings", "active_ms" of work, "paid_ms" of all that they submitted, "steps",
                 "gold": {"n", "right", "missed", "blamed", "gave_up", "low", "high"},
                 "consensus": {"n", "right", "missed", "blamed"}, "others": {"pairs", "same"},
                 "flags": [kind of `labeling.quality.flags` that is raised], "signs": {kind: SIGN}}}
    confusion    {"counts": 3 × 3 (consensus by what was said, over -1, 0, +1), "recall": {"-1": ESTIMATE, …},
                 "over_credit", "over_blame": ESTIMATE, "n_traces"}: the latest settled traces
    settlements  {state: number of traces}
    watching     {"bar", "reason" why there is none, "screens", "gold_a_rater", "false_pauses"}: of a hundred raters
                 exactly at the bar, in a month; "screens": the bar is of those who passed a screening
    bias         {"missed": [{"step", …ESTIMATE}], "blamed": [{"from", "to", …ESTIMATE}]}: of hidden gold, errors
                 missed by their step and sound traces blamed by their length, each with its interval by problem
    settled      {"traces", "steps", "of": how many there are to settle}
    settled_days list of {"day", "settled", "contested", "steps"}: what came to an end of its readings on each day
    days         list of {"day", "readings", "active_ms", "paid_ms"}: every day since the beginning with any work

An ESTIMATE is {"value", "low", "high", "reason", "interval_reason", "bootstrap", "bootstrap_reason", "n", "n_paired",
"n_problems"}: a value or the reason why there is none. A SIGN is {"value", "low", "high", "n", "usual", "is_raised"};
`watching.signs` puts it into words. `course(project_id=...)` gives the headline day by day.
"""

import datetime as dt
import time
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from labeling.models import DailyFigures, Figures
from labeling.quality import arrivals, estimates, populations, positions, workdays, workload
from labeling.quality.tallied import Tallied

MOST_PAIRS = 100
# Computed again no sooner than this, and no sooner than five times as long as it took.
REST = dt.timedelta(seconds=5)
_TIMES = 5
LOST_AFTER = dt.timedelta(minutes=3)  # many times what a million traces take


@dataclass(frozen=True)
class Shown:
    content: dict[str, Any]
    computed_at: dt.datetime
    is_stale: bool  # something was submitted since; it is computed again within seconds
    drifted_traces: int
    drifted_counts: int
    recounted_at: dt.datetime | None


def read(*, project_id: int) -> Shown | None:
    """The figures as they were computed last; None where nothing was submitted yet."""
    row = Figures.objects.filter(pk=project_id, computed_at__isnull=False).first()
    if row is None or row.computed_at is None:
        return None
    return Shown(row.content, row.computed_at, row.is_stale, row.drifted_traces, row.drifted_counts, row.recounted_at)


def course(*, project_id: int, days: int = 365) -> QuerySet[DailyFigures]:
    """The headline at the end of each day on which something was submitted, in order."""
    newest = DailyFigures.objects.filter(project_id=project_id).order_by("-day")[:days]
    return DailyFigures.objects.filter(pk__in=newest.values("pk")).order_by("day")


def mark_stale(*, project_id: int, now: dt.datetime) -> None:
    Figures.objects.update_or_create(project_id=project_id, defaults={"is_stale": True})


def count_again(*, project_id: int, now: dt.datetime) -> None:
    """What they count changed, and nobody submitted: a file came, a trace went. Nothing where there are none yet."""
    Figures.objects.filter(pk=project_id).update(is_stale=True)


def stale(*, now: dt.datetime) -> list[int]:
    """Projects whose figures are to be computed: stale ones that have rested, and whatever a killed worker left."""
    rows = Figures.objects.filter(_is_due(now)).values_list("project_id", "computed_at", "took_ms")
    return [pk for pk, computed_at, took in rows if computed_at is None or now - computed_at >= _rest(took)]


def _is_due(now: dt.datetime) -> Q:
    lost = Q(began_at__lt=now - LOST_AFTER)
    return lost | Q(is_stale=True, began_at=None)


def _rest(took_ms: int) -> dt.timedelta:
    return max(REST, dt.timedelta(milliseconds=_TIMES * took_ms))


def begin(*, project_id: int, now: dt.datetime) -> bool:
    """Whether the figures are the caller's to compute: of several who ask at once one is told so. What is submitted
    from here on makes them stale again."""
    return bool(Figures.objects.filter(_is_due(now), pk=project_id).update(is_stale=False, began_at=now))


def compute(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Compute all figures of a project and keep them, unless newer ones are there."""
    Figures.objects.update_or_create(project_id=project_id, defaults={"is_stale": False})
    began = time.perf_counter()
    workdays.count(project_id=project_id, now=now)
    arrivals.bring_forward(project_id=project_id, now=now)
    content = of_project(project_id=project_id, now=now)
    took = round(1000 * (time.perf_counter() - began))
    row = Figures.objects.filter(pk=project_id).exclude(computed_at__gt=now)
    row.update(content=content, computed_at=now, took_ms=took, began_at=None)
    DailyFigures.objects.update_or_create(
        project_id=project_id, day=now.astimezone(dt.UTC).date(), defaults={"content": content["headline"]}
    )
    return content


def leave(*, project_id: int, now: dt.datetime) -> None:
    """The database was out of reach: they are stale, and whoever comes next may try."""
    Figures.objects.filter(pk=project_id).update(is_stale=True, began_at=None)


def of_project(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """The figures themselves; see the module."""
    everything = populations.read(project_id=project_id)
    within = populations.slice_of(project_id)
    chosen = everything if within is None else everything.only(within)
    return {
        "headline": {**_headline(chosen), "is_audit_slice": within is not None},
        "everything": None if within is None else _everything(everything),
        **{by: _slices(chosen, by) for by in ("domain", "guideline", "step_kind")},
        "generation": _slices(everything, "generation"),
        "pair": _pairs(everything),
        "position": positions.of_first_errors(chosen.meetings),
        **workload.of_project(project_id=project_id, meetings=everything.meetings, now=now),
    }


def _headline(tallied: Tallied) -> dict[str, Any]:
    patterns, meetings = tallied.all_steps(), tallied.meetings
    return {
        "steps": estimates.of_steps(patterns, with_bootstrap=True),
        "first_error": estimates.of_first_errors(meetings.reports(meetings.every()), with_bootstrap=True),
        "labels": estimates.shares(patterns),
        "n_traces": len(meetings),
        "n_traces_read_twice": int(meetings.is_read_twice.sum()),
    }


def _everything(tallied: Tallied) -> dict[str, Any]:
    meetings = tallied.meetings
    told = estimates.of_first_errors(meetings.reports(meetings.every()))
    return {"steps": estimates.of_steps(tallied.all_steps()), "first_error": told, "n_traces": len(meetings)}


def _slices(tallied: Tallied, by: str) -> list[dict[str, Any]]:
    meetings = tallied.meetings
    rows_of = None if by == "step_kind" else meetings.by(by)
    told = []
    for key, patterns in sorted(tallied.steps(by).items()):
        rows = meetings.at_kind(key) if rows_of is None else rows_of[key]
        of_first_errors = estimates.of_places if rows_of is None else estimates.of_first_errors
        steps = {"steps": estimates.of_steps(patterns), "labels": estimates.shares(patterns)}
        told.append(
            {"key": key, **steps, "first_error": of_first_errors(meetings.reports(rows)), "n_traces": len(rows)}
        )
    return told


def _pairs(tallied: Tallied) -> list[dict[str, Any]]:
    rows_of = tallied.meetings.by("pair")
    most = sorted(tallied.steps("pair").items(), key=lambda item: -item[1].n_pairable)[:MOST_PAIRS]
    return [
        {
            "raters": list(pair),
            "steps": estimates.of_steps(patterns),
            "first_error": estimates.of_first_errors(tallied.meetings.reports(rows_of[pair])),
        }
        for pair, patterns in most
    ]
