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
                 "flags": [kind of `labeling.quality.signals` that is raised], "signs": {kind: SIGN}}}
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
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count, Q, QuerySet

from labeling.models import DailyProjectStats, Gold, GoldAnswer, Project, ProjectStats, ReportCount
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.quality import (
    consensus,
    error_breakdowns,
    estimate_rows,
    gold_monitor,
    running_totals,
    signals,
    tally_arrays,
    trace_counts,
    workdays,
)
from labeling.quality.tally_arrays import ReadingPairs, TallyArrays
from stats import intervals, sequential_tests
from stats.estimates import Reason

# What each rater did and how it stands to gold, to the consensus and to others; what the project came to. Reads only.


MONTH = dt.timedelta(days=30)


def build_workload(*, project_id: int, meetings: ReadingPairs, now: dt.datetime) -> dict[str, Any]:
    return {
        "raters": _build_raters(project_id, meetings),
        "confusion": error_breakdowns.compute_confusion(project_id),
        "settlements": running_totals.count_by_state(project_id),
        "settled": _count_resolved(project_id),
        "days": workdays.sum_time_by_day(project_id),
        "watching": _build_gold_monitor(project_id, now),
        "bias": error_breakdowns.compute_gold_bias(project_id),
        "settled_days": running_totals.count_by_day(project_id),
    }


def _build_raters(project_id: int, meetings: ReadingPairs) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for each in running_totals.load_rater_totals(project_id):
        row = found[str(each.rater_id)]
        row |= {"readings": each.readings, "steps": each.steps, "active_ms": 0, "paid_ms": 0}
        if each.compared:
            row["consensus"] = _consensus_row(each)
    for rater, (active, paid) in workdays.sum_time_by_rater(project_id).items():
        found[str(rater)] |= {"active_ms": active, "paid_ms": paid}
    for part, rows in (("gold", _gold_by_rater(project_id)), ("others", _agreement_with_others(meetings))):
        for rater, told in rows.items():
            found[str(rater)][part] = told
    for rater, signs in signals.compute_signals(project_id=project_id).items():
        found[str(rater)] |= {"flags": signals.list_raised_kinds(signs), "signs": signals.signals_as_dicts(signs)}
    return dict(found)


def _consensus_row(count: ReportCount) -> dict[str, int]:
    right, missed = max(0, count.same), max(0, count.missed)
    blamed = max(0, count.compared - right - missed)
    return {"n": right + missed + blamed, "right": right, "missed": missed, "blamed": blamed}


def _gold_by_rater(project_id: int) -> dict[int, dict[str, Any]]:
    answers = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN)
    counted: dict[int, Counter[str]] = defaultdict(Counter)
    for rater, verdict, n in answers.values_list("rater_id", "verdict").annotate(Count("pk")):
        counted[rater][verdict] = n
    return {rater: _gold_accuracy_row(verdicts) for rater, verdicts in counted.items()}


def _gold_accuracy_row(verdicts: Counter[str]) -> dict[str, Any]:
    n, right = verdicts.total(), verdicts[GoldVerdict.RIGHT]
    around = intervals.wilson_interval(right=right, n=n)
    return {"n": n, **{v.value: verdicts[v] for v in GoldVerdict}, "low": around.low, "high": around.high}


def _agreement_with_others(meetings: ReadingPairs) -> dict[int, dict[str, int]]:
    """In how many of the traces read with somebody else both saw the first error at the same place."""
    met = meetings.is_read_twice & ~meetings.is_censored.any(axis=1)
    raters, place = np.unique(meetings.raters[met], return_inverse=True)
    is_same = np.repeat(meetings.ends[met, 0] == meetings.ends[met, 1], 2)
    pairs = np.bincount(place.ravel(), minlength=len(raters))
    same = np.bincount(place.ravel(), weights=is_same, minlength=len(raters)).astype(np.int64)
    counted = zip(raters.tolist(), pairs.tolist(), same.tolist(), strict=True)
    return {rater: {"pairs": n, "same": agreeing} for rater, n, agreeing in counted}


def _count_resolved(project_id: int) -> dict[str, int]:
    traces, steps = running_totals.count_resolved(project_id)
    unsettled = Gold.objects.active().filter(trace__project=project_id)
    unsettled = unsettled.exclude(trace__settlement__state__in=consensus.RESOLVED_STATES)  # a consensus can become gold
    gold = unsettled.values("trace").distinct().count()
    every = trace_counts.count_traces(project_id=project_id)
    return {"traces": traces, "steps": steps, "of": max(every - gold, 0)}


def _build_gold_monitor(project_id: int, now: dt.datetime) -> dict[str, Any]:
    """The project's bar, or why there is none; and how many of a hundred raters who reach it exactly would be paused in
    their first month, at the gold of the last: the price of watching."""
    bar = Project.objects.get(pk=project_id).gold_bar
    month = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN, answered_at__gte=now - MONTH)
    seen = month.aggregate(n=Count("pk"), raters=Count("rater", distinct=True))
    a_rater = round(seen["n"] / seen["raters"]) if seen["raters"] else 0
    paused = (
        sequential_tests.expected_false_pauses(plan=sequential_tests.make_plan(p0=bar), gold=a_rater)
        if bar and a_rater
        else None
    )
    reason = gold_monitor.measure_baseline_accuracy(project_id=project_id) if bar is None else None
    screens = gold_monitor.uses_screening(project_id=project_id)
    return {
        "bar": bar,
        "reason": reason if isinstance(reason, Reason) else None,
        "screens": screens,
        "gold_a_rater": a_rater,
        "false_pauses": paused,
    }


MAX_PAIRS = 100
# Computed again no sooner than this, and no sooner than five times as long as it took.
MIN_RECOMPUTE_INTERVAL = dt.timedelta(seconds=5)
_REST_FACTOR = 5
LOST_AFTER = dt.timedelta(minutes=3)  # many times what a million traces take


@dataclass(frozen=True)
class StoredProjectStats:
    content: dict[str, Any]
    computed_at: dt.datetime
    is_stale: bool  # something was submitted since; it is computed again within seconds
    drifted_traces: int
    drifted_counts: int
    recounted_at: dt.datetime | None


def load_project_stats(*, project_id: int) -> StoredProjectStats | None:
    """The figures as they were computed last; None where nothing was submitted yet."""
    row = ProjectStats.objects.filter(pk=project_id, computed_at__isnull=False).first()
    if row is None or row.computed_at is None:
        return None
    return StoredProjectStats(
        row.content, row.computed_at, row.is_stale, row.drifted_traces, row.drifted_counts, row.recounted_at
    )


def list_daily_stats(*, project_id: int, days: int = 365) -> QuerySet[DailyProjectStats]:
    """The headline at the end of each day on which something was submitted, in order."""
    newest = DailyProjectStats.objects.filter(project_id=project_id).order_by("-day")[:days]
    return DailyProjectStats.objects.filter(pk__in=newest.values("pk")).order_by("day")


def mark_stats_stale(*, project_id: int, now: dt.datetime) -> None:
    ProjectStats.objects.update_or_create(project_id=project_id, defaults={"is_stale": True})


def mark_existing_stats_stale(*, project_id: int, now: dt.datetime) -> None:
    """What they count changed, and nobody submitted: a file came, a trace went. Nothing where there are none yet."""
    ProjectStats.objects.filter(pk=project_id).update(is_stale=True)


def find_stale_projects(*, now: dt.datetime) -> list[int]:
    """Projects whose figures are to be computed: stale ones that have rested, and whatever a killed worker left."""
    rows = ProjectStats.objects.filter(_is_due(now)).values_list("project_id", "computed_at", "took_ms")
    return [
        pk for pk, computed_at, took in rows if computed_at is None or now - computed_at >= _recompute_interval(took)
    ]


def _is_due(now: dt.datetime) -> Q:
    lost = Q(began_at__lt=now - LOST_AFTER)
    return lost | Q(is_stale=True, began_at=None)


def _recompute_interval(took_ms: int) -> dt.timedelta:
    return max(MIN_RECOMPUTE_INTERVAL, dt.timedelta(milliseconds=_REST_FACTOR * took_ms))


def claim_computation(*, project_id: int, now: dt.datetime) -> bool:
    """Whether the figures are the caller's to compute: of several who ask at once one is told so. What is submitted
    from here on makes them stale again."""
    return bool(ProjectStats.objects.filter(_is_due(now), pk=project_id).update(is_stale=False, began_at=now))


def compute_project_stats(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Compute all figures of a project and keep them, unless newer ones are there."""
    ProjectStats.objects.update_or_create(project_id=project_id, defaults={"is_stale": False})
    began = time.perf_counter()
    workdays.update_workdays(project_id=project_id, now=now)
    trace_counts.advance_trace_count(project_id=project_id, now=now)
    content = build_stats_content(project_id=project_id, now=now)
    took = round(1000 * (time.perf_counter() - began))
    row = ProjectStats.objects.filter(pk=project_id).exclude(computed_at__gt=now)
    row.update(content=content, computed_at=now, took_ms=took, began_at=None)
    DailyProjectStats.objects.update_or_create(
        project_id=project_id, day=now.astimezone(dt.UTC).date(), defaults={"content": content["headline"]}
    )
    return content


def release_computation(*, project_id: int, now: dt.datetime) -> None:
    """The database was out of reach: they are stale, and whoever comes next may try."""
    ProjectStats.objects.filter(pk=project_id).update(is_stale=True, began_at=None)


def build_stats_content(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """The figures themselves; see the module."""
    everything = tally_arrays.load_tally_arrays(project_id=project_id)
    within = tally_arrays.find_audit_slice(project_id)
    chosen = everything if within is None else everything.only(within)
    return {
        "headline": {**_build_headline(chosen), "is_audit_slice": within is not None},
        "everything": None if within is None else _build_everything(everything),
        **{by: _build_slices(chosen, by) for by in ("domain", "guideline", "step_kind")},
        "generation": _build_slices(everything, "generation"),
        "pair": _build_pairs(everything),
        "position": error_breakdowns.agreement_by_position(chosen.meetings),
        **build_workload(project_id=project_id, meetings=everything.meetings, now=now),
    }


def _build_headline(tallied: TallyArrays) -> dict[str, Any]:
    patterns, meetings = tallied.all_steps(), tallied.meetings
    return {
        "steps": estimate_rows.step_agreement_rows(patterns, with_bootstrap=True),
        "first_error": estimate_rows.first_error_rows(meetings.reports(meetings.every()), with_bootstrap=True),
        "labels": estimate_rows.label_shares_row(patterns),
        "n_traces": len(meetings),
        "n_traces_read_twice": int(meetings.is_read_twice.sum()),
    }


def _build_everything(tallied: TallyArrays) -> dict[str, Any]:
    meetings = tallied.meetings
    told = estimate_rows.first_error_rows(meetings.reports(meetings.every()))
    return {
        "steps": estimate_rows.step_agreement_rows(tallied.all_steps()),
        "first_error": told,
        "n_traces": len(meetings),
    }


def _build_slices(tallied: TallyArrays, by: str) -> list[dict[str, Any]]:
    meetings = tallied.meetings
    rows_of = None if by == "step_kind" else meetings.by(by)
    told = []
    for key, patterns in sorted(tallied.steps(by).items()):
        rows = meetings.at_kind(key) if rows_of is None else rows_of[key]
        of_first_errors = estimate_rows.first_error_place_rows if rows_of is None else estimate_rows.first_error_rows
        steps = {
            "steps": estimate_rows.step_agreement_rows(patterns),
            "labels": estimate_rows.label_shares_row(patterns),
        }
        told.append(
            {"key": key, **steps, "first_error": of_first_errors(meetings.reports(rows)), "n_traces": len(rows)}
        )
    return told


def _build_pairs(tallied: TallyArrays) -> list[dict[str, Any]]:
    rows_of = tallied.meetings.by("pair")
    most = sorted(tallied.steps("pair").items(), key=lambda item: -item[1].n_pairable)[:MAX_PAIRS]
    return [
        {
            "raters": list(pair),
            "steps": estimate_rows.step_agreement_rows(patterns),
            "first_error": estimate_rows.first_error_rows(tallied.meetings.reports(rows_of[pair])),
        }
        for pair, patterns in most
    ]
