"""Breakdowns of errors: step ratings against the consensus, bias on hidden gold, and agreement by step position."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from django.db.models import Count, F

from labeling.models import Gold, GoldAnswer, Judgment
from labeling.models.consensus import ConsensusSource
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.quality import consensus, estimate_rows
from labeling.quality.tally_arrays import ReadingPairs
from stats import confusion, estimation
from stats.estimates import Estimate
from stats.estimation import Statistic

MAX_CONFUSION_TRACES = 300  # the latest resolved traces
LENGTH_BUCKETS = ((1, 4), (5, 8), (9, 16), (17, None))  # numbers of steps, both ends included
MAX_BIAS_STEPS = 30
MAX_POSITIONS = 30
_RATING_INDEX = {-1: 0, 0: 1, 1: 2}
_STATISTICS: dict[str, Statistic] = {
    **{f"recall {value}": confusion.recall(place=place, k=3) for value, place in _RATING_INDEX.items()},
    "over_credit": confusion.missed_errors(negative=0, k=3),
    "over_blame": confusion.false_alarms(negative=0, k=3),
}


def compute_confusion(project_id: int) -> dict[str, Any]:
    """Compare step ratings with the consensus of the latest resolved traces.

    Consensus of a single vote is left out: compared with itself, a submission is always right.
    """
    several = consensus.current_revisions(project_id=project_id).exclude(source=ConsensusSource.RATERS, n_votes__lt=2)
    newest = several.select_related("trace").order_by("-made_at", "-pk")
    settled = list(newest[:MAX_CONFUSION_TRACES])
    labels = {(row.trace_id, step, option): rating for row in settled for step, option, rating, *_ in row.labels}
    problem_of = {row.trace_id: row.trace.problem_id for row in settled}
    compared = [
        (labels[trace, step, option], rating, problem_of[trace])
        for trace, step, option, rating in _load_voting_ratings(list(problem_of))
        if (trace, step, option) in labels
    ]
    _, problems = np.unique([problem for _, _, problem in compared], return_inverse=True)
    tables = confusion.count_tables(
        reference=np.array([_RATING_INDEX[label] for label, _, _ in compared], dtype=np.int64),
        given=np.array([_RATING_INDEX[rating] for _, rating, _ in compared], dtype=np.int64),
        problems=problems.astype(np.int64),
        k=3,
        n_problems=int(problems.max(initial=-1)) + 1,
    )
    estimates = estimation.estimates(
        statistics=_STATISTICS, sample=confusion.sample_from_tables(tables), with_bootstrap=False
    )
    counts = tables.sum(axis=0).astype(int)
    cases = {"over_credit": counts[0].sum(), "over_blame": counts[1:].sum()}
    cases |= {f"recall {value}": counts[place].sum() for value, place in _RATING_INDEX.items()}
    # Each share has its own denominator, so n is replaced by its number of steps.
    rows = {
        name: estimate_rows.estimate_row(estimates[name]) | {"n": int(n), "n_paired": int(n)}
        for name, n in cases.items()
    }
    return {
        "counts": counts.tolist(),
        "recall": {str(value): rows[f"recall {value}"] for value in _RATING_INDEX},
        "over_credit": rows["over_credit"],
        "over_blame": rows["over_blame"],
        "n_traces": len(settled),
    }


def _load_voting_ratings(trace_ids: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (trace, step, option, rating) of the latest revision of each voting submission."""
    rows = Judgment.objects.filter(
        turn__assignment__report__trace_id__in=trace_ids,
        turn__revision=F("turn__assignment__report__revision"),
    ).values_list("turn__assignment__trace_id", "turn__step__position", "option__position", "rating")
    for trace, step, option, rating in rows:
        if rating is not None:
            yield trace, step, option, rating


_BucketCounts = dict[int, dict[int, tuple[int, int]]]  # by bucket and problem: wrong, answers


def compute_gold_bias(project_id: int) -> dict[str, list[dict[str, Any]]]:
    """Measure on hidden gold whether raters miss late errors and see errors in long correct traces.

    `missed` is the share of missed errors by the earliest accepted step, `blamed` the share of false alarms by the
    length of correct traces. Answers that gave up are left out.
    """
    answers = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN).exclude(verdict=GoldVerdict.GAVE_UP)
    counts = list(answers.values_list("gold", "verdict").annotate(Count("pk")).order_by())
    golds = Gold.objects.select_related("trace").in_bulk({gold for gold, _, _ in counts})
    missed: _BucketCounts = defaultdict(dict)
    blamed: _BucketCounts = defaultdict(dict)
    for key, verdict, n in counts:
        gold = golds[key]
        errors = [at for at in gold.accepted_first_errors if at is not None]
        if None not in gold.accepted_first_errors and min(errors) < MAX_BIAS_STEPS:
            _add_answers(missed[min(errors)], gold, n, verdict == GoldVerdict.MISSED)
        elif not errors:
            _add_answers(blamed[_bucket(gold.trace.n_steps)], gold, n, verdict == GoldVerdict.BLAMED)
    return {
        "missed": [{"step": step, **_share_row(missed[step])} for step in sorted(missed)],
        "blamed": [
            {"from": LENGTH_BUCKETS[at][0], "to": LENGTH_BUCKETS[at][1], **_share_row(blamed[at])}
            for at in sorted(blamed)
        ],
    }


def _add_answers(counts: dict[int, tuple[int, int]], gold: Gold, n: int, is_wrong: bool) -> None:
    wrong, total = counts.get(gold.trace.problem_id, (0, 0))
    counts[gold.trace.problem_id] = (wrong + n * is_wrong, total + n)


def _bucket(n_steps: int) -> int:
    return next(at for at, (_, most) in enumerate(LENGTH_BUCKETS) if most is None or n_steps <= most)


def _share_row(counts: dict[int, tuple[int, int]]) -> dict[str, Any]:
    return estimate_rows.estimate_row(estimation.estimate_share_by_problem(counts))


def agreement_by_position(pairs: ReadingPairs) -> list[dict[str, Any]]:
    """Return agreement by step position, among pairs of submissions that both judged the step."""
    paired = pairs.is_read_twice
    ends, censored, lengths = pairs.ends[paired], pairs.is_censored[paired], pairs.n_steps[paired]
    problems = np.unique(pairs.columns["problem"][paired], return_inverse=True)[1]
    rows = []
    for step in range(min(int(lengths.max(initial=0)), MAX_POSITIONS)):
        judged = (ends > step) | ((ends == step) & ~censored)  # a report censored here did not judge it
        both_judged = judged.all(axis=1) & (step < lengths)
        wrong = (ends == step)[both_judged]
        both, one = int(wrong.all(axis=1).sum()), int((wrong.sum(axis=1) == 1).sum())
        same = wrong.sum(axis=1) != 1
        hits = np.bincount(problems[both_judged], weights=same).astype(np.int64)
        estimate = estimation.estimate_share(hits, np.bincount(problems[both_judged]).astype(np.int64))
        rows.append({"step": step, "agree": estimate.value, "both": both, "one": one, **_interval_row(estimate)})
    return rows


def _interval_row(estimate: Estimate) -> dict[str, Any]:
    interval = estimate.interval
    return {
        "n": estimate.counts.units,
        "n_problems": estimate.counts.problems,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "interval_reason": estimate.interval_reason,
    }
