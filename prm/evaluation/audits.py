"""Audits that show a PRM to be right for the wrong reason.

Each audit has a value at which it raises an alarm:

    last-step ratio   P(the lowest score is on the last step | answer wrong) / mean(1/n): a PRM far above 1 has
                      collapsed to an outcome model (1.60 in a published case; alarm above 1.5)
    outcome slope     coefficient of "answer right" in logit(score) at a fixed label of the step: above 0 the PRM infers
                      the outcome from the trace
    false confidence  share of wrong steps with P(right) ≥ 0.9; alarm if it is above 0.3 beyond its interval
    length-matched    risk-set AUC among steps of similar length; alarm if it is below 0.5 beyond its interval
    contamination     problems of the training set that the PRM or raters are evaluated on
    length drift      corr(score, log characters) among the served traces, minus the same in the pool: a loop that
                      selects by length (alarm beyond 0.2); measured with each batch, not with the evaluation

Z. Zhang et al. (2025), "The lessons of developing process reward models", arXiv:2501.07301 (drift to outcome);
R. Geirhos et al. (2020), "Shortcut learning in deep neural networks", doi:10.1038/s42256-020-00257-z.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prm.evaluation import step_figures
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces, LabeledSteps
from prm.selection.hazards import logit
from stats.arrays import Bools, Floats, Ints
from stats.estimates import Estimate

MIN_CASES = 30
# Figures of a PRM that was trained on these are worthless in this project, so such an alarm blocks the gate.
GATING_KINDS = frozenset({"reserve", "gold", "canary"})
_LAST_STEP_ALARM, _DRIFT_ALARM, _CONFIDENCE_ALARM = 1.5, 0.2, 0.3
_MAX_POSITIONS = 6


@dataclass(frozen=True)
class AuditFigure:
    """`value` is empty without cases."""

    value: float | None
    n: int
    is_alarming: bool


@dataclass(frozen=True)
class TraceOutcomes:
    """Per evaluated trace: the index of its domain, and whether its answer is right (None if unknown)."""

    domains: Sequence[str]
    domain: Sequence[int]
    is_answer_right: Sequence[bool | None]


def build_audit_report(
    judged: JudgedTraces, outcomes: TraceOutcomes, *, contamination: dict[str, Any]
) -> dict[str, Any]:
    """Run every audit; `alarms` names the raised ones, `advisory` those of them that do not block the gate."""
    audits = {
        **_audit_collapse(judged, outcomes),
        **_audit_confidence(judged, outcomes),
        **_audit_shortcut(judged),
        "contamination": _audit_contamination(contamination),
    }
    alarms = sorted(name for name, audit in audits.items() if audit["is_alarming"])
    return {
        "audits": audits,
        "domains": _audit_transfer(judged, outcomes),
        "alarms": alarms,
        "advisory": [name for name in alarms if not audits[name].get("holds", True)],
    }


# --- outcome collapse -----------------------------------------------------------------------------------------------


def _audit_collapse(judged: JudgedTraces, outcomes: TraceOutcomes) -> dict[str, Any]:
    is_known = np.array([each is not None for each in outcomes.is_answer_right], dtype=np.bool_)
    is_right = np.array([bool(each) for each in outcomes.is_answer_right], dtype=np.bool_)
    known, is_right_known = judged.keep(is_known), is_right[is_known]
    steps = known.labeled_steps()
    ratio = last_step_ratio(p_wrong=known.p_wrong, lengths=known.lengths, is_answer_right=is_right_known)
    slope = outcome_slope(p_wrong=steps.p_wrong, is_wrong=steps.is_wrong, is_answer_right=is_right_known[steps.traces])
    right = judged.keep(is_known & is_right)
    return {
        "last_step_ratio": _figure_to_json(ratio),
        "outcome_slope": _figure_to_json(slope),
        "auc_right_answers": {**estimate_to_json(_trace_auc(right, right.truth != NO_ERROR)), "is_alarming": False},
        "auc_wrong_answers": {**estimate_to_json(_trace_auc(known, ~is_right_known)), "is_alarming": False},
    }


def last_step_ratio(*, p_wrong: Floats, lengths: Ints, is_answer_right: Bools) -> AuditFigure:
    """Return how often the last step scores lowest, relative to chance. Of equally low steps the last one counts."""
    starts = np.cumsum(lengths) - lengths
    traces = np.flatnonzero(~is_answer_right & (lengths > 1))
    if not len(traces):
        return AuditFigure(None, 0, False)
    is_last = [
        p_wrong[starts[trace] + lengths[trace] - 1] >= p_wrong[starts[trace] : starts[trace] + lengths[trace]].max()
        for trace in traces
    ]
    ratio = float(np.mean(is_last) / np.mean(1 / lengths[traces]))
    return AuditFigure(ratio, len(traces), ratio > _LAST_STEP_ALARM)


def outcome_slope(*, p_wrong: Floats, is_wrong: Bools, is_answer_right: Bools) -> AuditFigure:
    """Regress the scores of labeled steps on label and outcome; the alarm needs two standard errors above 0."""
    design = np.column_stack([np.ones(len(p_wrong)), ~is_wrong, is_answer_right]).astype(np.float64)
    if len(p_wrong) < 10 or np.linalg.matrix_rank(design) < 3:
        return AuditFigure(None, len(p_wrong), False)
    scores = -logit(p_wrong)
    coefficients = np.linalg.lstsq(design, scores, rcond=None)[0]
    variance = ((scores - design @ coefficients) ** 2).sum() / (len(scores) - 3)
    error = float(np.sqrt(variance * np.linalg.inv(design.T @ design)[2, 2]))
    slope = float(coefficients[2])
    return AuditFigure(slope, len(scores), slope > 2 * error)


def _trace_auc(judged: JudgedTraces, is_case: Bools) -> Estimate:
    """Return the AUC of traces by P(some step wrong)."""
    n = len(judged.lengths)
    log_right = np.bincount(judged.traces, weights=np.log1p(-np.minimum(judged.p_wrong, 1 - 1e-9)), minlength=n)
    zeros = np.zeros(n, dtype=np.int64)
    return step_figures.auc(
        LabeledSteps(1 - np.exp(log_right), is_case, np.zeros(n), zeros, np.arange(n), judged.problems, judged.sources)
    )


# --- confidence, length, domains, contamination ---------------------------------------------------------------------


def _audit_confidence(judged: JudgedTraces, outcomes: TraceOutcomes) -> dict[str, Any]:
    """Report the share of confident errors: overall, by domain, and by position in the trace."""
    steps = judged.labeled_steps()
    overall = step_figures.false_confidence_share(steps)
    is_enough = overall.counts.pairable >= MIN_CASES
    is_alarming = is_enough and overall.interval is not None and overall.interval.low > _CONFIDENCE_ALARM
    domain = np.array(outcomes.domain, dtype=np.int64)[steps.traces]
    n_positions = min(int(steps.indexes.max(initial=-1)) + 1, _MAX_POSITIONS)
    return {
        "false_confidence": {
            **estimate_to_json(overall),
            "is_alarming": is_alarming,
            "domains": {
                name: estimate_to_json(step_figures.false_confidence_share(steps, is_case=domain == n))
                for n, name in enumerate(outcomes.domains)
            },
            "places": {
                str(n + 1): estimate_to_json(step_figures.false_confidence_share(steps, is_case=steps.indexes == n))
                for n in range(n_positions)
            },
        }
    }


def _audit_shortcut(judged: JudgedTraces) -> dict[str, Any]:
    steps = judged.labeled_steps()
    matched, length_only = step_figures.length_matched_auc(steps), step_figures.length_only_auc(steps)
    is_enough = int(steps.is_wrong.sum()) >= MIN_CASES
    is_alarming = is_enough and matched.interval is not None and matched.interval.high < 0.5
    return {
        "length_matched": {**estimate_to_json(matched), "is_alarming": is_alarming},
        "length_alone": {**estimate_to_json(length_only), "is_alarming": False},
    }


def _audit_transfer(judged: JudgedTraces, outcomes: TraceOutcomes) -> dict[str, Any]:
    """Report the length-matched AUC of every domain, and whether a claim about all of them is supported."""
    domain = np.array(outcomes.domain, dtype=np.int64)
    figures = {
        name: estimate_to_json(step_figures.length_matched_auc(judged.keep(domain == n).labeled_steps()))
        for n, name in enumerate(outcomes.domains)
    }
    return {"figures": figures, "may_claim_all": holds_in_every_domain(figures)}


def holds_in_every_domain(figures: dict[str, Any]) -> bool:
    """Return whether every domain has an interval, and all of them are above 0.5."""
    return all(each["interval"] is not None and each["interval"][0] > 0.5 for each in figures.values())


def _audit_contamination(contamination: dict[str, Any]) -> dict[str, Any]:
    """Raise an alarm for every overlap; `holds` the gate only if this project's figures depend on the problems.

    Nothing is known of a PRM that was trained elsewhere, so it raises no alarm.
    """
    kinds = {each["kind"] for each in contamination.get("judges", []) if each["n_equal"] + each["n_overlapping"]}
    return {**contamination, "is_alarming": bool(kinds), "holds": not kinds.isdisjoint(GATING_KINDS)}


# --- length drift of a batch ----------------------------------------------------------------------------------------


def length_drift(
    *, pool_p_wrong: Floats, pool_log_characters: Floats, served_p_wrong: Floats, served_log_characters: Floats
) -> AuditFigure:
    in_pool = _correlation(pool_p_wrong, pool_log_characters)
    among_served = _correlation(served_p_wrong, served_log_characters)
    if in_pool is None or among_served is None:
        return AuditFigure(None, len(served_p_wrong), False)
    drift = among_served - in_pool
    return AuditFigure(drift, len(served_p_wrong), abs(drift) > _DRIFT_ALARM)


def _correlation(first: Floats, second: Floats) -> float | None:
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _figure_to_json(figure: AuditFigure) -> dict[str, Any]:
    is_alarming = bool(figure.is_alarming and figure.n >= MIN_CASES)
    return {"value": figure.value, "n": figure.n, "interval": None, "is_alarming": is_alarming}


def estimate_to_json(estimate: Estimate) -> dict[str, Any]:
    interval = [estimate.interval.low, estimate.interval.high] if estimate.interval else None
    reason = estimate.reason or (estimate.interval_reason if estimate.interval is None else None)
    return {"value": estimate.value, "interval": interval, "n": estimate.counts.pairable, "reason": str(reason or "")}
