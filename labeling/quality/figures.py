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
    position     list of {"step", "n", "agree", "both", "one"} over rateable steps from 0: pairs of readings that had
                 both come so far, the share that says the same of it, how often both or one alone call it wrong
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

import numpy as np
from django.db.models import QuerySet

from labeling.agreement.reports import Reports
from labeling.models import DailyFigures, Figures
from labeling.quality import arrivals, estimates, populations, positions, workdays, workload
from labeling.quality.populations import Meetings

MOST_PAIRS = 100
# Computed again no sooner than this, and no sooner than five times as long as it took.
REST = dt.timedelta(seconds=5)
_TIMES = 5


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


def stale(*, now: dt.datetime) -> list[int]:
    """Projects whose figures are to be computed: stale ones that have rested."""
    rows = Figures.objects.filter(is_stale=True).values_list("project_id", "computed_at", "took_ms")
    return [pk for pk, computed_at, took in rows if computed_at is None or now - computed_at >= _rest(took)]


def _rest(took_ms: int) -> dt.timedelta:
    return max(REST, dt.timedelta(milliseconds=_TIMES * took_ms))


def compute(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Compute all figures of a project and keep them. What is submitted meanwhile makes them stale again."""
    Figures.objects.update_or_create(project_id=project_id, defaults={"is_stale": False})
    began = time.perf_counter()
    workdays.count(project_id=project_id, now=now)
    arrivals.bring_forward(project_id=project_id, now=now)
    content = of_project(project_id=project_id, now=now)
    took = round(1000 * (time.perf_counter() - began))
    Figures.objects.filter(pk=project_id).update(content=content, computed_at=now, took_ms=took)
    DailyFigures.objects.update_or_create(
        project_id=project_id, day=now.astimezone(dt.UTC).date(), defaults={"content": content["headline"]}
    )
    return content


def of_project(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """The figures themselves; see the module."""
    within = populations.slice_of(project_id)
    meetings = populations.of_first_errors(project_id=project_id, within=within)
    everything = meetings if within is None else populations.of_first_errors(project_id=project_id)
    return {
        "headline": _headline(project_id, meetings, within),
        "everything": None if within is None else _everything(project_id, everything),
        **{by: _slices(project_id, by, meetings, within) for by in ("domain", "guideline", "step_kind")},
        "generation": _slices(project_id, "generation", everything, None),
        "pair": _pairs(project_id, everything),
        "position": positions.of_first_errors(meetings),
        **workload.of_project(project_id=project_id, meetings=everything, now=now),
    }


def _headline(project_id: int, meetings: Meetings, within: list[int] | None) -> dict[str, Any]:
    patterns = populations.of_steps(project_id=project_id, within=within).get((0,), populations.NOTHING)
    everything = np.ones(len(meetings.n_steps), dtype=np.bool_)
    return {
        "steps": estimates.of_steps(patterns, with_bootstrap=True),
        "first_error": estimates.of_first_errors(meetings.reports(everything), with_bootstrap=True),
        "labels": estimates.shares(patterns),
        "is_audit_slice": within is not None,
        "n_traces": len(meetings.n_steps),
        "n_traces_read_twice": int((meetings.ends[:, 1] >= 0).sum()),
    }


def _everything(project_id: int, meetings: Meetings) -> dict[str, Any]:
    patterns = populations.of_steps(project_id=project_id).get((0,), populations.NOTHING)
    every = np.ones(len(meetings.n_steps), dtype=np.bool_)
    told = {"steps": estimates.of_steps(patterns), "first_error": _first_errors(meetings.reports(every))}
    return told | {"n_traces": len(meetings.n_steps)}


def _slices(project_id: int, by: str, meetings: Meetings, within: list[int] | None) -> list[dict[str, Any]]:
    rows = []
    for (key,), patterns in sorted(populations.of_steps(project_id=project_id, by=by, within=within).items()):
        told: dict[str, Any] = {"key": key, "steps": estimates.of_steps(patterns), "labels": estimates.shares(patterns)}
        if by in meetings.keys:
            chosen = np.asarray(meetings.keys[by] == key)
            told |= {"first_error": _first_errors(meetings.reports(chosen)), "n_traces": int(chosen.sum())}
        elif by == "step_kind":
            chosen = meetings.at_kind(key)
            told |= {"first_error": estimates.of_places(meetings.reports(chosen)), "n_traces": int(chosen.sum())}
        rows.append(told)
    return rows


def _pairs(project_id: int, meetings: Meetings) -> list[dict[str, Any]]:
    found = populations.of_steps(project_id=project_id, by="pair")
    most = sorted(found.items(), key=lambda item: -item[1].n_pairable)[:MOST_PAIRS]
    low, high = meetings.raters.min(axis=1, initial=2**62), meetings.raters.max(axis=1, initial=-1)
    return [
        {
            "raters": list(key),
            "steps": estimates.of_steps(patterns),
            "first_error": _first_errors(meetings.reports((low == key[0]) & (high == key[1]))),
        }
        for key, patterns in most
    ]


def _first_errors(reports: Reports) -> dict[str, Any]:
    return estimates.of_first_errors(reports)
