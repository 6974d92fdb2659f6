"""Statistics of a project: computed in the background, stored, and read by pages. The only module that writes them.

`load_project_stats` returns the last computed statistics. Their `content` is plain JSON:

    headline     {"steps": {statistic: ESTIMATE}, "first_error": {"exact", "within_one", "has_error_kappa": ESTIMATE,
                 "pairs", "pairs_with_a_censored_report"}, "labels": {"-1": share, "0": …, "1": …},
                 "alternatives": {statistic: ESTIMATE}, "n_traces", "n_traces_read_twice", "is_audit_slice"}: over all
                 labeled traces, or over the audit slice if a policy has drawn traces. "steps" and "labels" cover the
                 steps of the traces, "alternatives" the alternatives to them, which are rated only where the rater
                 found an error
    everything   the same over all labeled traces if the headline is of the audit slice, otherwise null
    imported     {"version", "mix": as below, "agreement"}: labels that people gave in imported files. The agreement is
                 in the form of the headline, with "n_raters", "pair" and "domain" as below; null without any
    mix          {"-1": ratings, "0": …, "1": …}: of steps and alternatives, in the submissions of the headline and in
                 imported ones
    domain, generation, guideline, step_kind
                 lists of {"key", "steps", "labels", "first_error", "n_traces"}; guideline 0 is none, -1 two different
                 ones. For a step kind, "first_error" covers traces with a first error at such a step, without kappa
    pair         list of {"raters": [id, id], "steps", "first_error"}, pairs with the most common steps first
    position     list of {"step", "n", "agree", "low", "high", "interval_reason", "n_problems", "both", "one"} over
                 rateable steps from 0, for pairs of submissions that both judged the step: agreement with its interval,
                 and how often both or only one call the step wrong
    raters       {rater id: {"readings": submissions, "active_ms" on work, "paid_ms" on everything,
                 "set_aside_ms" on work that was set aside, part of "active_ms", "steps",
                 "gold": {"n", "right", "missed", "blamed", "gave_up", "low", "high"},
                 "consensus": {"n", "right", "missed", "blamed"}, "others": {"pairs", "same"},
                 "flags": [raised kinds of `signals.SIGNAL_KINDS`], "signs": {kind: SIGNAL},
                 "protection": {"signals": {name: {"log_e", "n"}}, "joint", "n", "is_overwhelming", "detection",
                 "false_alarm"}, see `stats.rater_protection`}}
    confusion    {"counts": 3 × 3 over -1, 0, +1 (rows the consensus, columns the rating), "recall": {"-1": ESTIMATE,
                 …}, "over_credit": missed errors, "over_blame": false alarms, "n_traces"}: the latest resolved traces
    explanations {"kind": ESTIMATE, "severity": ESTIMATE}: alpha on steps that several raters rated negative
    answers      {code of a question on the whole trace: ESTIMATE}: alpha of its answers
    settlements  {state: number of traces}
    watching     {"bar": gold threshold, "reason" if there is none, "screens": whether it is based on raters who passed
                 the screening, "gold_a_rater", "false_pauses": of 100 raters exactly at the threshold, per month}
    bias         {"missed": [{"step", …ESTIMATE}], "blamed": [{"from", "to", …ESTIMATE}]}: on hidden gold, errors missed
                 by their step, and false alarms on correct traces by their length
    settled      {"traces", "steps", "of": number of traces to settle}
    remaining    {"slots": labels to come, in the queue and open, "unfinished": traces without all first labels,
                 "finished": traces with all of them, "further": labels added to those}: what is left to pay for
    settled_days list of {"day", "settled", "contested", "steps"}: traces finished on each day
    days         list of {"day", "readings", "active_ms", "paid_ms"}: every day with any work

An ESTIMATE is {"value", "low", "high", "reason", "interval_reason", "bootstrap", "bootstrap_reason", "n", "n_paired",
"n_problems"}: a value, or the reason why there is none. A SIGNAL is {"value", "low", "high", "n", "usual",
"is_raised"}. `list_daily_stats` returns the headline day by day.
"""

import datetime as dt
import time
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import numpy as np
import structlog
from django.db import DatabaseError
from django.db.models import Count, Max, Q, QuerySet

import rawsql
from jobs import wakeups
from labeling.models import DailyProjectStats, Gold, GoldAnswer, Project, ProjectStats, ReportCount, Trace
from labeling.models.gold import GoldUse
from labeling.quality import (
    error_breakdowns,
    explanations,
    gold_monitor,
    imported_labels,
    protection,
    rater_model,
    remaining_work,
    settlements,
    signals,
    tallies,
    workdays,
)
from labeling.quality.tallies import SubmissionPairs, TallyArrays
from stats import sequential_tests
from stats.estimates import Reason

logger = structlog.get_logger(__name__)

# Stale statistics are recomputed after five minutes. If someone has opened a page that shows them, or changed something
# by hand, after five seconds. In any case after five times the duration of the computation.
UNSEEN_INTERVAL = dt.timedelta(minutes=5)
AWAITED_INTERVAL = dt.timedelta(seconds=5)
_INTERVAL_FACTOR = 5
LOST_AFTER = dt.timedelta(minutes=3)  # far longer than a computation with a million traces
# A condition on `labeling_projectstats`: a computation is due, or its worker was killed.
IS_DUE = f"""(began_at < %(now)s::timestamptz - interval '{LOST_AFTER.total_seconds()} seconds'
  OR is_stale AND began_at IS NULL AND (computed_at IS NULL OR computed_at <= %(now)s::timestamptz - GREATEST(
    CASE WHEN is_awaited THEN interval '{AWAITED_INTERVAL.total_seconds()} seconds'
      ELSE interval '{UNSEEN_INTERVAL.total_seconds()} seconds' END,
    interval '{_INTERVAL_FACTOR} milliseconds' * took_ms)))"""
_FIND_DUE = f"SELECT project_id FROM labeling_projectstats WHERE {IS_DUE} ORDER BY 1"  # noqa: S608  our own constants
MAX_PAIRS = 100
MONTH = dt.timedelta(days=30)
COMPLETE_AFTER = dt.timedelta(hours=1)


def load_project_stats(*, project_id: int) -> ProjectStats | None:
    """Return the stored statistics, or None if they were never computed."""
    return ProjectStats.objects.filter(pk=project_id, computed_at__isnull=False).first()


def await_stats(*, stats: ProjectStats | None, now: dt.datetime) -> None:
    """Have stale statistics computed soon: someone looks at them."""
    if stats is not None and stats.is_stale and not stats.is_awaited:
        mark_existing_stats_stale(project_id=stats.pk, now=now)


def choose_headline(content: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the agreement to show first, and whether it covers imported labels. It does if no labels were made
    here."""
    headline, imported = content["headline"], content["imported"]["agreement"]
    is_imported = imported is not None and not headline["n_traces_read_twice"]
    return (imported if is_imported else headline), is_imported


def list_daily_stats(*, project_id: int, days: int = 365) -> QuerySet[DailyProjectStats]:
    """Return the headline at the end of each day with submissions, in order."""
    newest = DailyProjectStats.objects.filter(project_id=project_id).order_by("-day")[:days]
    return DailyProjectStats.objects.filter(pk__in=newest.values("pk")).order_by("day")


def mark_stats_stale(*, project_id: int, now: dt.datetime, is_awaited: bool = True) -> None:
    """Mark statistics as stale. `is_awaited`: after an act of a person, who will look at its effect."""
    if not mark_existing_stats_stale(project_id=project_id, now=now, is_awaited=is_awaited):
        ProjectStats.objects.update_or_create(project_id=project_id, defaults={"is_stale": True})
        wakeups.request_task(settlements.REFRESH_TASK, is_awaited=is_awaited)


def mark_existing_stats_stale(*, project_id: int, now: dt.datetime, is_awaited: bool = True) -> bool:
    """Mark statistics as stale, if the project has any. Return whether it has.

    Locks the row even if they are stale already: a computation must not begin before the change is committed."""
    if not rawsql.fetch_rows(_MARK_STALE, {"project": project_id, "awaited": is_awaited}):
        return False
    wakeups.request_task(settlements.REFRESH_TASK, is_awaited=is_awaited)
    return True


_MARK_STALE = """
UPDATE labeling_projectstats SET is_stale = true, is_awaited = is_awaited OR %(awaited)s::boolean
WHERE project_id = %(project)s RETURNING project_id"""


def find_stale_projects(*, now: dt.datetime) -> list[int]:
    """Return projects with stale statistics whose interval is over, or whose worker was killed."""
    return [project_id for (project_id,) in rawsql.fetch_rows(_FIND_DUE, {"now": now})]


def _is_claimable(now: dt.datetime) -> Q:
    lost = Q(began_at__lt=now - LOST_AFTER)
    return lost | Q(is_stale=True, began_at=None)


def claim_computation(*, project_id: int, now: dt.datetime) -> bool:
    """Claim the computation. Only one of several concurrent callers gets True.

    Submissions from now on make the statistics stale again.
    """
    claimed = ProjectStats.objects.filter(_is_claimable(now), pk=project_id)
    return bool(claimed.update(is_stale=False, is_awaited=False, began_at=now))


def refresh_project_stats(*, project_id: int, now: dt.datetime) -> None:
    """Compute the statistics of one project, unless another worker does it already."""
    if not claim_computation(project_id=project_id, now=now):
        return
    try:
        gold_monitor.set_gold_threshold(project=Project.objects.get(pk=project_id), now=now)
        content = compute_project_stats(project_id=project_id, now=now)
        protection.pause_raters(project_id=project_id, figures=content["raters"], now=now)
        rater_model.enqueue_fit_if_grown(project_id=project_id, now=now)
    except DatabaseError:
        ProjectStats.objects.filter(pk=project_id).update(is_stale=True, began_at=None)  # the next caller can retry
        raise
    except Exception:
        # The claim is kept, so the next attempt waits until the claim expires.
        logger.exception("figures.not_computed", project=project_id)


def compute_project_stats(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Compute and store all statistics of a project, unless newer ones are stored."""
    ProjectStats.objects.update_or_create(project_id=project_id, defaults={"is_stale": False, "is_awaited": False})
    began = time.perf_counter()
    workdays.update_workdays(project_id=project_id, now=now)
    advance_trace_count(project_id=project_id, now=now)
    content = build_stats_content(project_id=project_id, now=now)
    took = round(1000 * (time.perf_counter() - began))
    row = ProjectStats.objects.filter(pk=project_id).exclude(computed_at__gt=now)
    row.update(content=content, computed_at=now, took_ms=took, began_at=None)
    DailyProjectStats.objects.update_or_create(
        project_id=project_id,
        day=now.astimezone(dt.UTC).date(),
        defaults={"content": choose_headline(content)[0] | {"mix": content["mix"]}},
    )
    return content


# Content


def build_stats_content(*, project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Compute the statistics that the module docstring describes."""
    everything = tallies.load_tally_arrays(project_id=project_id)
    audit_slice = tallies.find_audit_slice(project_id)
    headline = everything if audit_slice is None else everything.only(audit_slice)
    stored = ProjectStats.objects.filter(pk=project_id).values_list("content__imported", flat=True).first()
    imported = imported_labels.update_imported_stats(project_id, stored or {})
    return {
        "headline": {**_build_headline(headline, with_bootstrap=True), "is_audit_slice": audit_slice is not None},
        "everything": None if audit_slice is None else _build_headline(everything),
        "imported": imported,
        "mix": {rating: n + imported["mix"].get(rating, 0) for rating, n in everything.count_ratings().items()},
        **{by: _build_slices(headline, by) for by in ("domain", "guideline", "step_kind")},
        "generation": _build_slices(everything, "generation"),
        "pair": _build_rater_pairs(everything),
        "position": error_breakdowns.agreement_by_position(headline.pairs),
        "raters": _build_raters(project_id, everything.pairs),
        "confusion": error_breakdowns.compute_confusion(project_id),
        "explanations": explanations.compute_explanation_agreement(project_id),
        "answers": explanations.compute_answer_agreement(Project.objects.get(pk=project_id)),
        "settlements": settlements.count_by_state(project_id),
        "settled": _count_resolved(project_id),
        "days": workdays.sum_time_by_day(project_id),
        "remaining": remaining_work.count_remaining(project_id)._asdict(),
        "watching": _build_gold_monitor(project_id, now),
        "bias": error_breakdowns.compute_gold_bias(project_id),
        "settled_days": settlements.count_by_day(project_id),
    }


def compute_headline_by_raters(
    *, project_id: int, only: Collection[int] = (), without: Collection[int] = ()
) -> dict[str, Any]:
    """Compute the headline agreement of some raters, on the traces that compare no others, and under "imported" that
    of their imported labels. Nothing is stored."""
    arrays, audit_slice = tallies.load_tally_arrays(project_id=project_id), tallies.find_audit_slice(project_id)
    headline = arrays if audit_slice is None else arrays.only(audit_slice)
    return {
        **_build_headline(headline.by_raters(only=only, without=without)),
        "is_audit_slice": audit_slice is not None,
        "imported": imported_labels.build_imported_stats(
            imported_labels.load_imported_labels(project_id, only=only, without=without)
        ),
    }


def _build_headline(arrays: TallyArrays, *, with_bootstrap: bool = False) -> dict[str, Any]:
    patterns, pairs = arrays.all_steps(), arrays.pairs
    return {
        "steps": tallies.step_agreement_rows(patterns, with_bootstrap=with_bootstrap),
        "alternatives": tallies.step_agreement_rows(arrays.all_alternatives()),
        "first_error": tallies.first_error_rows(pairs.reports(), with_bootstrap=with_bootstrap),
        "labels": tallies.label_shares_row(patterns),
        "n_traces": len(pairs),
        "n_traces_read_twice": int(pairs.is_read_twice.sum()),
    }


def _build_slices(arrays: TallyArrays, by: str) -> list[dict[str, Any]]:
    pairs = arrays.pairs
    rows_of = {} if by == "step_kind" else pairs.by(by)
    slices = []
    for key, patterns in sorted(arrays.steps(by).items()):
        rows = pairs.at_kind(key) if by == "step_kind" else rows_of[key]
        first_error = tallies.first_error_rows(pairs.reports(rows))
        if by == "step_kind":
            del first_error["has_error_kappa"]  # the traces were selected because they have an error
        slices.append(
            {
                "key": key,
                "steps": tallies.step_agreement_rows(patterns),
                "labels": tallies.label_shares_row(patterns),
                "first_error": first_error,
                "n_traces": len(rows),
            }
        )
    return slices


def _build_rater_pairs(arrays: TallyArrays) -> list[dict[str, Any]]:
    rows_of = arrays.pairs.by("pair")
    largest = sorted(arrays.steps("pair").items(), key=lambda item: -item[1].n_pairable)[:MAX_PAIRS]
    return [
        {
            "raters": list(raters),
            "steps": tallies.step_agreement_rows(patterns),
            "first_error": tallies.first_error_rows(arrays.pairs.reports(rows_of[raters])),
        }
        for raters, patterns in largest
    ]


def _build_raters(project_id: int, pairs: SubmissionPairs) -> dict[str, dict[str, Any]]:
    by_rater: dict[str, dict[str, Any]] = defaultdict(dict)
    for totals in settlements.load_rater_totals(project_id):
        row = by_rater[str(totals.rater_id)]
        row |= {"readings": totals.readings, "steps": totals.steps, "active_ms": 0, "paid_ms": 0}
        if totals.compared:
            row["consensus"] = _consensus_row(totals)
    set_aside = workdays.sum_time_set_aside(project_id)
    for rater, (active, paid) in workdays.sum_time_by_rater(project_id).items():
        by_rater[str(rater)] |= {"active_ms": active, "paid_ms": paid, "set_aside_ms": set_aside.get(rater, 0)}
    for rater, gold in _gold_by_rater(project_id).items():
        by_rater[str(rater)]["gold"] = gold
    for rater, others in _agreement_with_others(pairs).items():
        by_rater[str(rater)]["others"] = others
    submissions = signals.load_submission_rows(project_id=project_id)
    for rater, evidence in protection.weigh_raters(project_id=project_id, submissions=submissions).items():
        by_rater[str(rater)]["protection"] = evidence
    for rater, by_kind in signals.compute_signals(project_id=project_id, submissions=submissions).items():
        signs = {kind: asdict(signal) for kind, signal in by_kind.items()}
        by_rater[str(rater)] |= {"flags": signals.list_raised_kinds(by_kind), "signs": signs}
    return dict(by_rater)


def _consensus_row(totals: ReportCount) -> dict[str, int]:
    right, missed = max(0, totals.same), max(0, totals.missed)
    blamed = max(0, totals.compared - right - missed)
    return {"n": right + missed + blamed, "right": right, "missed": missed, "blamed": blamed}


def _gold_by_rater(project_id: int) -> dict[int, dict[str, Any]]:
    answers = GoldAnswer.objects.counted().filter(project_id=project_id, use=GoldUse.HIDDEN)
    by_rater: dict[int, Counter[str]] = defaultdict(Counter)
    for rater, verdict, n in answers.values_list("rater_id", "verdict").annotate(Count("pk")):
        by_rater[rater][verdict] = n
    accuracies = {rater: gold_monitor.count_verdicts(verdicts) for rater, verdicts in by_rater.items()}
    return {
        rater: asdict(accuracy) | {"low": accuracy.interval.low, "high": accuracy.interval.high}
        for rater, accuracy in accuracies.items()
    }


def _agreement_with_others(pairs: SubmissionPairs) -> dict[int, dict[str, int]]:
    """Count for each rater the traces shared with another rater, and those with the same first error."""
    compared = pairs.is_read_twice & ~pairs.is_censored.any(axis=1)
    raters, index = np.unique(pairs.raters[compared], return_inverse=True)
    is_same = np.repeat(pairs.ends[compared, 0] == pairs.ends[compared, 1], 2)
    n_pairs = np.bincount(index.ravel(), minlength=len(raters))
    n_same = np.bincount(index.ravel(), weights=is_same, minlength=len(raters)).astype(np.int64)
    rows = zip(raters.tolist(), n_pairs.tolist(), n_same.tolist(), strict=True)
    return {rater: {"pairs": n, "same": same} for rater, n, same in rows}


def _count_resolved(project_id: int) -> dict[str, int]:
    traces, steps = settlements.count_resolved(project_id)
    unsettled = Gold.objects.active().filter(trace__project=project_id)
    unsettled = unsettled.exclude(
        trace__settlement__state__in=settlements.RESOLVED_STATES
    )  # a consensus can become gold
    gold = unsettled.values("trace").distinct().count()
    total = count_traces(project_id=project_id)
    return {"traces": traces, "steps": steps, "of": max(total - gold, 0)}


def _build_gold_monitor(project_id: int, now: dt.datetime) -> dict[str, Any]:
    """Return the gold threshold, or why there is none, and the expected number of false pauses per month."""
    bar = Project.objects.get(pk=project_id).gold_bar
    answers = GoldAnswer.objects.counted().filter(project_id=project_id, use=GoldUse.HIDDEN)
    counts = answers.filter(answered_at__gte=now - MONTH).aggregate(n=Count("pk"), raters=Count("rater", distinct=True))
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


# The number of traces, without scanning all of them: the count up to some trace is stored, and newer ones are counted.
# Ids are assigned before their transactions commit, so a lower id can appear after a higher one. Traces older than an
# hour are complete: no transaction takes that long.


def count_traces(*, project_id: int) -> int:
    """Return the number of traces that are not withdrawn."""
    row = ProjectStats.objects.filter(pk=project_id).values_list("n_traces", "last_trace").first()
    n, last = row or (0, 0)
    withdrawn = Trace.objects.filter(project=project_id, withdrawn_at__isnull=False).count()
    return n + _traces_after(project_id, last).count() - withdrawn


def advance_trace_count(*, project_id: int, now: dt.datetime) -> None:
    """Add the traces that have become complete to the stored count."""
    n, last = ProjectStats.objects.values_list("n_traces", "last_trace").get(pk=project_id)
    new = _traces_after(project_id, last)
    young = new.filter(added_at__gte=now - COMPLETE_AFTER).order_by("pk").values_list("pk", flat=True).first()
    complete = new if young is None else new.filter(pk__lt=young)
    to = complete.aggregate(to=Max("pk"))["to"]
    if to is not None:
        n += complete.filter(pk__lte=to).count()
        ProjectStats.objects.filter(pk=project_id).update(n_traces=n, last_trace=to)


def recount_traces(*, project_id: int) -> int:
    """Correct the stored count. Return 1 if it was wrong, otherwise 0."""
    last = ProjectStats.objects.values_list("last_trace", flat=True).get(pk=project_id)
    n = Trace.objects.filter(project=project_id, pk__lte=last).count()
    return ProjectStats.objects.filter(pk=project_id, last_trace=last).exclude(n_traces=n).update(n_traces=n)


def reset_trace_count(*, project_id: int) -> None:
    """Count all traces again after some were deleted."""
    ProjectStats.objects.filter(pk=project_id).update(n_traces=0, last_trace=0)


def _traces_after(project_id: int, last: int) -> QuerySet[Trace]:
    return Trace.objects.filter(project=project_id, pk__gt=last)
