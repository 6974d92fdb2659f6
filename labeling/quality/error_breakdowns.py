"""Breakdowns of errors: step ratings against the consensus, bias on hidden gold, and agreement by step position."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Count, Exists, F, OuterRef

from labeling.models import Assignment, Consensus, Gold, GoldAnswer, Judgment, Project
from labeling.models.assignment import Population
from labeling.models.consensus import ConsensusSource
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.models.project import EVERY_STEP_PROTOCOLS
from labeling.quality import consensus, tallies
from labeling.quality.consensus import NEGATIVE, OptionRating
from labeling.quality.tallies import SubmissionPairs
from stats import confusion, estimation, label_votes
from stats.estimation import Statistic

MAX_CONFUSION_TRACES = 300  # the latest resolved traces
LENGTH_BUCKETS = ((1, 4), (5, 8), (9, 16), (17, None))  # numbers of steps, both ends included
MAX_BIAS_STEPS = 30
MAX_POSITIONS = 30
RATINGS = (-1, 0, 1)
_STATISTICS: dict[str, Statistic] = {
    **{f"recall {rating}": confusion.recall(place=place, k=3) for place, rating in enumerate(RATINGS)},
    "over_credit": confusion.missed_errors(negative=0, k=3),
    "over_blame": confusion.false_alarms(negative=0, k=3),
}


def compute_confusion(project_id: int) -> dict[str, Any]:
    """Compare step ratings with the consensus of the other raters, on the latest resolved traces.

    A rater's own vote is left out, since it would make the rater look better: with two raters, it is half of the
    consensus. A rating is not compared if the others are tied. The decision of a person replaces their votes. Traces
    that a person moved to the front are left out, as in the headline.
    """
    chosen = Assignment.objects.counted().filter(trace=OuterRef("trace"), population=Population.CHOSEN)
    newest = consensus.current_revisions(project_id=project_id).filter(~Exists(chosen))
    newest = newest.select_related("trace").order_by("-made_at", "-pk")
    settled = list(newest[:MAX_CONFUSION_TRACES])
    is_every_step = Project.objects.filter(pk=project_id, protocol__in=EVERY_STEP_PROTOCOLS).exists()
    ratings = _load_voting_ratings([row.trace_id for row in settled])
    compared = [
        (reference, given, row.trace.problem_id, row.trace_id)
        for row in settled
        for reference, given in _compare_with_others(row, ratings[row.trace_id], is_every_step=is_every_step)
    ]
    reference, given, problem_ids, trace_ids = np.array(compared, dtype=np.int64).reshape(-1, 4).T
    problems = np.unique(problem_ids, return_inverse=True)[1].astype(np.int64)
    tables = confusion.count_tables(
        reference=reference + 1,  # ratings -1, 0 and 1 as indices
        given=given + 1,
        problems=problems,
        k=3,
        n_problems=int(problems.max(initial=-1)) + 1,
    )
    estimates = estimation.estimate_all(
        statistics=_STATISTICS, sample=confusion.sample_from_tables(tables), with_bootstrap=False
    )
    counts = tables.sum(axis=0).astype(int)
    cases = {"over_credit": counts[0].sum(), "over_blame": counts[1:].sum()}
    cases |= {f"recall {rating}": counts[place].sum() for place, rating in enumerate(RATINGS)}
    # Each share has its own denominator, so n is replaced by its number of steps.
    rows = {
        name: tallies.estimate_row(estimates[name]) | {"n": int(n), "n_paired": int(n)} for name, n in cases.items()
    }
    return {
        "counts": counts.tolist(),
        "recall": {str(rating): rows[f"recall {rating}"] for rating in RATINGS},
        "over_credit": rows["over_credit"],
        "over_blame": rows["over_blame"],
        "n_traces": len(np.unique(trace_ids)),
    }


class _VotingReport(NamedTuple):
    assignment: int
    rater: int
    first_error: int | None
    is_censored: bool


_TraceRatings = dict[_VotingReport, list[OptionRating]]


def _load_voting_ratings(trace_ids: list[int]) -> dict[int, _TraceRatings]:
    """Return the ratings of the latest revision of each voting submission that is not set aside, by trace."""
    rows = Judgment.objects.filter(
        turn__assignment__report__trace_id__in=trace_ids,
        turn__assignment__set_aside=None,
        turn__revision=F("turn__assignment__report__revision"),
        turn__step__is_rateable=True,
        rating__isnull=False,
    )
    report = "turn__assignment__report"
    by_trace: dict[int, _TraceRatings] = defaultdict(lambda: defaultdict(list))
    for trace, *about, step, option, rating in rows.values_list(
        *(f"{report}__{name}" for name in ("trace_id", "assignment_id", "rater_id", "first_error", "is_censored")),
        *("turn__step__position", "option__position", "rating"),
    ):
        own = _VotingReport(*about)
        by_trace[trace][own].append(OptionRating(step, option, rating or 0, own.first_error))
    return by_trace


def _compare_with_others(row: Consensus, by_report: _TraceRatings, *, is_every_step: bool) -> Iterator[tuple[int, int]]:
    """Yield (label, rating) for each rating that the labels of the other raters cover."""
    for own, given in by_report.items():
        others = {report: ratings for report, ratings in by_report.items() if report.rater != own.rater}
        labels = _label_by_others(row, others, is_every_step=is_every_step)
        for rating in given:
            if (rating.step, rating.option) in labels:
                yield labels[rating.step, rating.option], rating.rating


def _label_by_others(row: Consensus, others: _TraceRatings, *, is_every_step: bool) -> dict[tuple[int, int], int]:
    """Return the ratings that steps and alternatives have by a person's decision, or by the votes of these raters."""
    votes = [report.first_error for report in others if not report.is_censored]
    leading = label_votes.find_leading_place(votes)
    is_decided = row.source == ConsensusSource.PERSON
    if not is_decided and (leading is None or leading.is_tied):
        return {}
    first_error = leading.place if leading and not is_decided else row.first_error
    ratings = [rating for own_ratings in others.values() for rating in own_ratings]
    if is_every_step:
        labels = consensus.labels_from_every_step(ratings)
    else:
        labels = consensus.labels_from_first_error(ratings, first_error=first_error, votes=votes)
    found = {(label.step, label.option): label.rating for label in labels}
    return found | ({(row.first_error, 0): NEGATIVE} if is_decided and row.first_error is not None else {})


_BucketCounts = dict[int, dict[int, tuple[int, int]]]  # by bucket and problem: wrong, answers


def compute_gold_bias(project_id: int) -> dict[str, list[dict[str, Any]]]:
    """Measure on hidden gold whether raters miss late errors and see errors in long correct traces.

    `missed` is the share of missed errors by the earliest accepted step, `blamed` the share of false alarms by the
    length of correct traces. Answers that gave up are left out.
    """
    answers = GoldAnswer.objects.counted().filter(project_id=project_id, use=GoldUse.HIDDEN)
    answers = answers.exclude(verdict=GoldVerdict.GAVE_UP)
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
    return tallies.estimate_row(estimation.estimate_share_by_problem(counts))


def agreement_by_position(pairs: SubmissionPairs) -> list[dict[str, Any]]:
    """Return agreement by step position, among pairs of submissions that both judged the step."""
    paired = pairs.is_read_twice
    ends, censored, lengths = pairs.ends[paired], pairs.is_censored[paired], pairs.columns["n_steps"][paired]
    problems = np.unique(pairs.columns["problem"][paired], return_inverse=True)[1]
    rows = []
    for step in range(min(int(lengths.max(initial=0)), MAX_POSITIONS)):
        judged = (ends > step) | ((ends == step) & ~censored)  # a report that is censored here did not judge the step
        both_judged = judged.all(axis=1) & (step < lengths)
        wrong = (ends == step)[both_judged]
        both, one = int(wrong.all(axis=1).sum()), int((wrong.sum(axis=1) == 1).sum())
        same = wrong.sum(axis=1) != 1
        hits = np.bincount(problems[both_judged], weights=same).astype(np.int64)
        estimate = estimation.estimate_share(hits, np.bincount(problems[both_judged]).astype(np.int64))
        row = tallies.estimate_row(estimate)
        interval = {name: row[name] for name in ("n", "n_problems", "low", "high", "interval_reason")}
        rows.append({"step": step, "agree": estimate.value, "both": both, "one": one, **interval})
    return rows
