"""The figures of a passport, as plain JSON. All but "pool" and "strata", which weigh them, leave out traces that the
policy or a person chose, as the headline agreement does.

    n_judged, n_unread   all traces that the machine judged, and those of them without a readable answer
    cost                 {"tokens", "money"} per judged trace, null for machines that labeled elsewhere
    overall              FIGURES
    domain, length       lists of {"key", …FIGURES}; the key of a length is [first, last] number of steps
    step_kind            list of {"key", "steps"}
    missed, false_alarms lists of {"first", "last", "hits", …ESTIMATE}: by step position, counted from 1
    reliability          {"bins": [{"low", "high", "n", "confidence", "right", "right_low", "right_high"}], "brier":
                         ESTIMATE, "ece": ESTIMATE} of P(E) of the label; null without stated probabilities
    gold                 ESTIMATE of the share of hidden gold that the machine answers right, with "right" and "cases"
    test                 the alternative annotator test: {"epsilon", "winning_rate", "advantage", "low", "high",
                         "reason", "is_passed", "people": [{"rater", "n", "advantage", "lead", "p", "is_rejected"}]}
    pool                 see `machines.pool_figures`
    canaries             the report on gaming canaries (`prm.evaluation.canary_report`), null until all are scored
    strata               list of {"stratum", "n_judged", "n_people", "n_gold", "agreement", "shared", "bounds":
                         [{"promised", "bound", "keeps", "reason"}]}: see `machines.license_strata`

FIGURES are {"n_traces", "exact", "within_one", "has_error_kappa", "pairs", "steps": {"pairwise_agreement",
"alpha_nominal"}: agreement with each person; "accuracy", "step_accuracy", "missed", "false_alarms": against the
consensus of people}. Accuracies count unreadable answers and missing labels as wrong, as benchmarks of judges do
("FirstErrAcc", "StepAcc": AgentProcessBench, arXiv:2603.14465). An ESTIMATE is that of `project_stats`.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from labeling.quality import tallies
from labeling.quality.error_breakdowns import LENGTH_BUCKETS
from machines.passport_data import PassportTrace, group_by_domain
from stats import alternative_annotator, estimation, machine_agreement, reliability
from stats.alternative_annotator import ItemAnswers
from stats.estimates import Estimate
from stats.machine_agreement import MachineErrors, MachinePairs, PositionErrors


def build_content(traces: Sequence[PassportTrace], *, epsilon: float, cost: dict[str, float] | None) -> dict[str, Any]:
    errors = _estimate_errors(traces)
    by_length = [
        ((first, last), [row for row in traces if first <= row.n_steps and (last is None or row.n_steps <= last)])
        for first, last in LENGTH_BUCKETS
    ]
    return {
        "cost": cost,
        "overall": build_figures(traces),
        "domain": [{"key": key, **build_figures(part)} for key, part in group_by_domain(traces).items()],
        "length": [{"key": list(key), **build_figures(part)} for key, part in by_length if part],
        "step_kind": _build_step_kinds(traces),
        "missed": [_position_row(row) for row in errors.missed_by_position],
        "false_alarms": [_position_row(row) for row in errors.false_alarms_by_position],
        "reliability": _build_reliability(traces),
        "gold": _build_gold(traces),
        "test": _build_test(traces, epsilon),
    }


def build_figures(traces: Sequence[PassportTrace]) -> dict[str, Any]:
    first_errors = machine_agreement.estimate_first_errors(_pair_ends(traces))
    errors = _estimate_errors(traces)
    return {
        "n_traces": len(traces),
        **{name: tallies.estimate_row(getattr(first_errors, name)) for name in ("exact", "within_one")},
        "has_error_kappa": tallies.estimate_row(first_errors.has_error_kappa),
        "pairs": first_errors.pairs,
        "steps": _build_steps([(row, pair.machine, pair.person) for row in traces for pair in row.step_pairs]),
        "accuracy": tallies.estimate_row(estimate_accuracy(traces)),
        "step_accuracy": tallies.estimate_row(_estimate_step_accuracy(traces)),
        "missed": tallies.estimate_row(errors.missed),
        "false_alarms": tallies.estimate_row(errors.false_alarms),
    }


def estimate_accuracy(traces: Sequence[PassportTrace]) -> Estimate:
    """Estimate on which share of the traces with a reference the machine names its first error."""
    return _estimate_share([(row, int(row.end == row.reference), 1) for row in traces if row.reference is not None])


def _estimate_step_accuracy(traces: Sequence[PassportTrace]) -> Estimate:
    return _estimate_share(
        [
            (
                row,
                sum(row.labels.get(place) == label for place, label in row.reference_labels.items()),
                len(row.reference_labels),
            )
            for row in traces
            if row.reference is not None
        ]
    )


def _estimate_share(counted: Sequence[tuple[PassportTrace, int, int]]) -> Estimate:
    by_problem: dict[int, tuple[int, int]] = {}
    for row, hits, cases in counted:
        before = by_problem.get(row.problem, (0, 0))
        by_problem[row.problem] = (before[0] + hits, before[1] + cases)
    return estimation.estimate_share_by_problem(by_problem)


def _pair_ends(traces: Sequence[PassportTrace]) -> MachinePairs:
    pairs = [
        (row.end, end, is_censored, row.n_steps, row.problem)
        for row in traces
        if row.end is not None
        for ends, is_censored in ((row.people, 0), (row.censored, 1))
        for end in ends.values()
    ]
    machine, person, censored, lengths, problems = np.array(pairs, dtype=np.int64).reshape(-1, 5).T
    return MachinePairs(machine, person, censored.astype(np.bool_), lengths, problems)


def _build_steps(pairs: Sequence[tuple[PassportTrace, int, int]]) -> dict[str, Any]:
    rows = np.array([(machine, person, row.problem) for row, machine, person in pairs], dtype=np.int64)
    found = machine_agreement.estimate_steps(*rows.reshape(-1, 3).T)
    return {name: tallies.estimate_row(estimate) for name, estimate in found.items()}


def _build_step_kinds(traces: Sequence[PassportTrace]) -> list[dict[str, Any]]:
    by_kind: dict[str, list[tuple[PassportTrace, int, int]]] = defaultdict(list)
    for row in traces:
        for pair in row.step_pairs:
            by_kind[pair.kind].append((row, pair.machine, pair.person))
    return [{"key": kind, "n": len(pairs), "steps": _build_steps(pairs)} for kind, pairs in sorted(by_kind.items())]


def _estimate_errors(traces: Sequence[PassportTrace]) -> MachineErrors:
    rows = [
        (row.end, row.reference, row.n_steps, row.problem)
        for row in traces
        if row.end is not None and row.reference is not None
    ]
    return machine_agreement.estimate_errors(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def _position_row(row: PositionErrors) -> dict[str, Any]:
    return {**tallies.estimate_row(row.estimate), "first": row.first, "last": row.last, "hits": row.n_hits}


def _build_reliability(traces: Sequence[PassportTrace]) -> dict[str, Any] | None:
    rows = [row for row in traces if row.confidence is not None and row.reference is not None]
    if not rows:
        return None
    found = reliability.estimate_reliability(
        confidences=np.array([row.confidence for row in rows], dtype=np.float64),
        is_right=np.array([row.end == row.reference for row in rows]),
        problems=np.array([row.problem for row in rows], dtype=np.int64),
    )
    return {
        "bins": [
            {
                "low": each.low,
                "high": each.high,
                "n": each.n,
                "confidence": each.mean_confidence,
                "right": each.right_share,
                "right_low": each.interval.low if each.interval else None,
                "right_high": each.interval.high if each.interval else None,
            }
            for each in found.bins
        ],
        "brier": tallies.estimate_row(found.brier),
        "ece": tallies.estimate_row(found.calibration_error),
    }


def _build_gold(traces: Sequence[PassportTrace]) -> dict[str, Any]:
    gold = [(row, int(row.end in row.accepted), 1) for row in traces if row.accepted]
    right = sum(hit for _, hit, _ in gold)
    return {**tallies.estimate_row(_estimate_share(gold)), "right": right, "cases": len(gold)}


def _build_test(traces: Sequence[PassportTrace], epsilon: float) -> dict[str, Any]:
    answers = [
        (item, rater, end)
        for item, row in enumerate(traces)
        if row.end is not None
        for rater, end in row.people.items()
    ]
    items, raters, ends = np.array(answers, dtype=np.int64).reshape(-1, 3).T
    people, person = np.unique(raters, return_inverse=True)
    found = alternative_annotator.compare_with_people(
        ItemAnswers(
            items,
            person.astype(np.int64),
            ends,
            machine=np.array([-1 if row.end is None else row.end for row in traces], dtype=np.int64),
            problems=np.array([row.problem for row in traces], dtype=np.int64),
        ),
        epsilon=epsilon,
    )
    return {
        "epsilon": epsilon,
        "winning_rate": found.winning_rate,
        "advantage": found.advantage,
        "low": found.interval.low if found.interval else None,
        "high": found.interval.high if found.interval else None,
        "reason": found.reason,
        "is_passed": found.is_passed,
        "people": [
            {
                "rater": int(people[each.person]),
                "n": each.n_items,
                "advantage": each.advantage,
                "lead": each.lead,
                "p": each.p,
                "is_rejected": each.is_rejected,
            }
            for each in found.people
        ],
    }
