"""Statistics of a project: computed in the background, stored, and read by pages. The only module that writes them.

`load_project_stats` returns the last computed statistics. Their `content` is plain JSON:

    headline     {"steps": {statistic: ESTIMATE}, "first_error": {"exact", "within_one", "has_error_kappa": ESTIMATE,
                 "pairs", "pairs_with_a_censored_report"}, "labels": {"-1": share, "0": …, "1": …},
                 "n_traces", "n_traces_read_twice", "is_audit_slice"}: over all labeled traces, or over the audit slice
                 if a policy has drawn traces
    everything   the same over all labeled traces if the headline is of the audit slice, otherwise null
    domain, generation, guideline, step_kind
                 lists of {"key", "steps", "labels", "first_error", "n_traces"}; guideline 0 is none, -1 two different
                 ones. For a step kind, "first_error" covers traces with a first error at such a step, without kappa
    pair         list of {"raters": [id, id], "steps", "first_error"}, pairs with the most common steps first
    position     list of {"step", "n", "agree", "low", "high", "interval_reason", "n_problems", "both", "one"} over
                 rateable steps from 0, for pairs of submissions that both judged the step: agreement with its interval,
                 and how often both or only one call the step wrong
    raters       {rater id: {"readings": submissions, "active_ms" on work, "paid_ms" on everything, "steps",
                 "gold": {"n", "right", "missed", "blamed", "gave_up", "low", "high"},
                 "consensus": {"n", "right", "missed", "blamed"}, "others": {"pairs", "same"},
                 "flags": [raised kinds of `signals.SIGNAL_KINDS`], "signs": {kind: SIGNAL}}}
    confusion    {"counts": 3 × 3 over -1, 0, +1 (rows the consensus, columns the rating), "recall": {"-1": ESTIMATE,
                 …}, "over_credit": missed errors, "over_blame": false alarms, "n_traces"}: the latest resolved traces
    settlements  {state: number of traces}
    watching     {"bar": gold threshold, "reason" if there is none, "screens": whether it is based on raters who passed
                 the screening, "gold_a_rater", "false_pauses": of 100 raters exactly at the threshold, per month}
    bias         {"missed": [{"step", …ESTIMATE}], "blamed": [{"from", "to", …ESTIMATE}]}: on hidden gold, errors missed
                 by their step, and false alarms on correct traces by their length
    settled      {"traces", "steps", "of": number of traces to settle}
    settled_days list of {"day", "settled", "contested", "steps"}: traces finished on each day
    days         list of {"day", "readings", "active_ms", "paid_ms"}: every day with any work

An ESTIMATE is {"value", "low", "high", "reason", "interval_reason", "bootstrap", "bootstrap_reason", "n", "n_paired",
"n_problems"}: a value, or the reason why there is none. A SIGNAL is {"value", "low", "high", "n", "usual",
"is_raised"}. `list_daily_stats` returns the headline day by day.
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

# Statistics are recomputed after 5 seconds at the earliest, and after five times the duration of the computation.
MIN_RECOMPUTE_INTERVAL = dt.timedelta(seconds=5)
_INTERVAL_FACTOR = 5
LOST_AFTER = dt.timedelta(minutes=3)  # far longer than a computation with a million traces
MAX_PAIRS = 100
MONTH = dt.timedelta(days=30)


@dataclass(frozen=True)
class StoredProjectStats:
    content: dict[str, Any]
    computed_at: dt.datetime
    is_stale: bool  # there are newer submissions; the statistics are recomputed within seconds
    drifted_traces: int
    drifted_counts: int
    recounted_at: dt.datetime | None


def load_project_stats(*, project_id: int) -> StoredProjectStats | None:
    """Return the stored statistics, or None if they were never computed."""
    row = ProjectStats.objects.filter(pk=project_id, computed_at__isnull=False).first()
    if row is None or row.computed_at is None:
        return None
    return StoredProjectStats(
        row.content, row.computed_at, row.is_stale, row.drifted_traces, row.drifted_counts, row.recounted_at
    )


def list_daily_stats(*, project_id: int, days: int = 365) -> QuerySet[DailyProjectStats]:
    """Return the headline at the end of each day with submissions, in order."""
    newest = DailyProjectStats.objects.filter(project_id=project_id).order_by("-day")[:days]
    return DailyProjectStats.objects.filter(pk__in=newest.values("pk")).order_by("day")


def mark_stats_stale(*, project_id: int, now: dt.datetime) -> None:
    ProjectStats.objects.update_or_create(project_id=project_id, defaults={"is_stale": True})


def mark_existing_stats_stale(*, project_id: int, now: dt.datetime) -> None:
    """Mark statistics as stale after an import or withdrawal, if the project has any."""
    ProjectStats.objects.filter(pk=project_id).update(is_stale=True)


def find_stale_projects(*, now: dt.datetime) -> list[int]:
    """Return projects with stale statistics whose minimum interval is over, or whose worker was killed."""
    rows = ProjectStats.objects.filter(_is_due(now)).values_list("project_id", "computed_at", "took_ms")
    return [
        pk for pk, computed_at, took in rows if computed_at is None or now - computed_at >= _recompute_interval(took)
    ]


def _is_due(now: dt.datetime) -> Q:
    lost = Q(began_at__lt=now - LOST_AFTER)
    return lost | Q(is_stale=True, began_at=None)


def _recompute_interval(took_ms: int) -> dt.timedelta:
    return max(MIN_RECOMPUTE_INTERVAL, dt.timedelta(milliseconds=_INTERVAL_FACTOR * took_ms))


def claim_computation(*, project_id: int, now: dt.datetime) -> bool:
    """Claim the computation. Only one of several concurrent callers gets True.

    Submissions from now on make the statistics stale again.
    """
    return bool(ProjectStats.objects.filter(_is_due(now), pk=project_id).update(is_stale=False, began_at=now))


def compute_project_stats(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Compute and store all statistics of a project, unless newer ones are stored."""
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
    """Release the claim after a database error, so that the next caller can retry."""
    ProjectStats.objects.filter(pk=project_id).update(is_stale=True, began_at=None)


# Content


def build_stats_content(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Compute the statistics that the module docstring describes."""
    everything = tally_arrays.load_tally_arrays(project_id=project_id)
    audit_slice = tally_arrays.find_audit_slice(project_id)
    headline = everything if audit_slice is None else everything.only(audit_slice)
    return {
        "headline": {**_build_headline(headline), "is_audit_slice": audit_slice is not None},
        "everything": None if audit_slice is None else _build_everything(everything),
        **{by: _build_slices(headline, by) for by in ("domain", "guideline", "step_kind")},
        "generation": _build_slices(everything, "generation"),
        "pair": _build_rater_pairs(everything),
        "position": error_breakdowns.agreement_by_position(headline.pairs),
        "raters": _build_raters(project_id, everything.pairs),
        "confusion": error_breakdowns.compute_confusion(project_id),
        "settlements": running_totals.count_by_state(project_id),
        "settled": _count_resolved(project_id),
        "days": workdays.sum_time_by_day(project_id),
        "watching": _build_gold_monitor(project_id, now),
        "bias": error_breakdowns.compute_gold_bias(project_id),
        "settled_days": running_totals.count_by_day(project_id),
    }


def _build_headline(tallies: TallyArrays) -> dict[str, Any]:
    patterns, pairs = tallies.all_steps(), tallies.pairs
    return {
        "steps": estimate_rows.step_agreement_rows(patterns, with_bootstrap=True),
        "first_error": estimate_rows.first_error_rows(pairs.reports(pairs.all_rows()), with_bootstrap=True),
        "labels": estimate_rows.label_shares_row(patterns),
        "n_traces": len(pairs),
        "n_traces_read_twice": int(pairs.is_read_twice.sum()),
    }


def _build_everything(tallies: TallyArrays) -> dict[str, Any]:
    pairs = tallies.pairs
    return {
        "steps": estimate_rows.step_agreement_rows(tallies.all_steps()),
        "first_error": estimate_rows.first_error_rows(pairs.reports(pairs.all_rows())),
        "n_traces": len(pairs),
    }


def _build_slices(tallies: TallyArrays, by: str) -> list[dict[str, Any]]:
    pairs = tallies.pairs
    rows_of = None if by == "step_kind" else pairs.by(by)
    slices = []
    for key, patterns in sorted(tallies.steps(by).items()):
        if rows_of is None:
            rows = pairs.at_kind(key)
            first_error = estimate_rows.first_error_place_rows(pairs.reports(rows))
        else:
            rows = rows_of[key]
            first_error = estimate_rows.first_error_rows(pairs.reports(rows))
        slices.append(
            {
                "key": key,
                "steps": estimate_rows.step_agreement_rows(patterns),
                "labels": estimate_rows.label_shares_row(patterns),
                "first_error": first_error,
                "n_traces": len(rows),
            }
        )
    return slices


def _build_rater_pairs(tallies: TallyArrays) -> list[dict[str, Any]]:
    rows_of = tallies.pairs.by("pair")
    largest = sorted(tallies.steps("pair").items(), key=lambda item: -item[1].n_pairable)[:MAX_PAIRS]
    return [
        {
            "raters": list(raters),
            "steps": estimate_rows.step_agreement_rows(patterns),
            "first_error": estimate_rows.first_error_rows(tallies.pairs.reports(rows_of[raters])),
        }
        for raters, patterns in largest
    ]


def _build_raters(project_id: int, pairs: ReadingPairs) -> dict[str, dict[str, Any]]:
    by_rater: dict[str, dict[str, Any]] = defaultdict(dict)
    for totals in running_totals.load_rater_totals(project_id):
        row = by_rater[str(totals.rater_id)]
        row |= {"readings": totals.readings, "steps": totals.steps, "active_ms": 0, "paid_ms": 0}
        if totals.compared:
            row["consensus"] = _consensus_row(totals)
    for rater, (active, paid) in workdays.sum_time_by_rater(project_id).items():
        by_rater[str(rater)] |= {"active_ms": active, "paid_ms": paid}
    for rater, gold in _gold_by_rater(project_id).items():
        by_rater[str(rater)]["gold"] = gold
    for rater, others in _agreement_with_others(pairs).items():
        by_rater[str(rater)]["others"] = others
    for rater, by_kind in signals.compute_signals(project_id=project_id).items():
        flags, signs = signals.list_raised_kinds(by_kind), signals.signals_as_dicts(by_kind)
        by_rater[str(rater)] |= {"flags": flags, "signs": signs}
    return dict(by_rater)


def _consensus_row(totals: ReportCount) -> dict[str, int]:
    right, missed = max(0, totals.same), max(0, totals.missed)
    blamed = max(0, totals.compared - right - missed)
    return {"n": right + missed + blamed, "right": right, "missed": missed, "blamed": blamed}


def _gold_by_rater(project_id: int) -> dict[int, dict[str, Any]]:
    answers = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN)
    by_rater: dict[int, Counter[str]] = defaultdict(Counter)
    for rater, verdict, n in answers.values_list("rater_id", "verdict").annotate(Count("pk")):
        by_rater[rater][verdict] = n
    return {rater: _gold_accuracy_row(verdicts) for rater, verdicts in by_rater.items()}


def _gold_accuracy_row(verdicts: Counter[str]) -> dict[str, Any]:
    n, right = verdicts.total(), verdicts[GoldVerdict.RIGHT]
    interval = intervals.wilson_interval(right=right, n=n)
    return {"n": n, **{v.value: verdicts[v] for v in GoldVerdict}, "low": interval.low, "high": interval.high}


def _agreement_with_others(pairs: ReadingPairs) -> dict[int, dict[str, int]]:
    """Count for each rater the traces shared with another rater, and those with the same first error."""
    compared = pairs.is_read_twice & ~pairs.is_censored.any(axis=1)
    raters, index = np.unique(pairs.raters[compared], return_inverse=True)
    is_same = np.repeat(pairs.ends[compared, 0] == pairs.ends[compared, 1], 2)
    n_pairs = np.bincount(index.ravel(), minlength=len(raters))
    n_same = np.bincount(index.ravel(), weights=is_same, minlength=len(raters)).astype(np.int64)
    rows = zip(raters.tolist(), n_pairs.tolist(), n_same.tolist(), strict=True)
    return {rater: {"pairs": n, "same": same} for rater, n, same in rows}


def _count_resolved(project_id: int) -> dict[str, int]:
    traces, steps = running_totals.count_resolved(project_id)
    unsettled = Gold.objects.active().filter(trace__project=project_id)
    unsettled = unsettled.exclude(trace__settlement__state__in=consensus.RESOLVED_STATES)  # a consensus can become gold
    gold = unsettled.values("trace").distinct().count()
    total = trace_counts.count_traces(project_id=project_id)
    return {"traces": traces, "steps": steps, "of": max(total - gold, 0)}


def _build_gold_monitor(project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Return the gold threshold, or why there is none, and the expected number of false pauses per month."""
    bar = Project.objects.get(pk=project_id).gold_bar
    answers = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN, answered_at__gte=now - MONTH)
    counts = answers.aggregate(n=Count("pk"), raters=Count("rater", distinct=True))
    per_rater = round(counts["n"] / counts["raters"]) if counts["raters"] else 0
    false_pauses = None
    if bar and per_rater:
        plan = sequential_tests.make_plan(p0=bar)
        false_pauses = sequential_tests.expected_false_pauses(plan=plan, gold=per_rater)
    reason = gold_monitor.measure_baseline_accuracy(project_id=project_id) if bar is None else None
    return {
        "bar": bar,
        "reason": reason if isinstance(reason, Reason) else None,
        "screens": gold_monitor.uses_screening(project_id=project_id),
        "gold_a_rater": per_rater,
        "false_pauses": false_pauses,
    }
