"""Figures that show a PRM being right for the wrong reason, each with the value at which it is an alarm.

    last-step ratio  P(the lowest score is the last step | answer wrong) / mean(1/n): far above 1 the PRM has collapsed
                     to an outcome model (1.60 for one that has; alarm above 1.5)
    outcome slope    coefficient of "answer right" in logit(score), the people's label of the step being held fixed:
                     above 0 the PRM reads the outcome out of the trace
    length drift     corr(score, log characters) among what was served, minus the same in the pool: a loop that feeds
                     on length (alarm beyond .2)

Z. Zhang et al. (2025), "The lessons of developing process reward models", arXiv:2501.07301 (drift to outcome);
R. Geirhos et al. (2020), "Shortcut learning in deep neural networks", doi:10.1038/s42256-020-00257-z.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prm.evaluation import concordance, error_shares
from prm.evaluation.labeled_steps import NO_ERROR, LabeledSteps, mask_labeled
from prm.evaluation.report import JudgedTraces
from prm.selection.platt import logit
from stats.arrays import Bools, Floats, Ints
from stats.estimates import Estimate

_LAST_STEP_ALARM, _DRIFT_ALARM = 1.5, 0.2


@dataclass(frozen=True)
class AuditFigure:
    """`value` is None where there was nothing to look at."""

    value: float | None
    n: int
    is_alarming: bool


def last_step_ratio(*, p_wrong: Floats, lengths: Ints, is_answer_right: Bools) -> AuditFigure:
    """Steps of traces laid end to end. The last of equally low steps counts as the lowest."""
    starts = np.cumsum(lengths) - lengths
    looked_at = np.flatnonzero(~is_answer_right & (lengths > 1))
    if not len(looked_at):
        return AuditFigure(None, 0, False)
    is_last = [
        p_wrong[starts[trace] + lengths[trace] - 1] >= p_wrong[starts[trace] : starts[trace] + lengths[trace]].max()
        for trace in looked_at
    ]
    ratio = float(np.mean(is_last) / np.mean(1 / lengths[looked_at]))
    return AuditFigure(ratio, len(looked_at), ratio > _LAST_STEP_ALARM)


def outcome_slope(*, p_wrong: Floats, is_wrong: Bools, is_answer_right: Bools) -> AuditFigure:
    """One entry per labelled step. The alarm needs the slope to be two standard errors above 0."""
    design = np.column_stack([np.ones(len(p_wrong)), ~is_wrong, is_answer_right]).astype(np.float64)
    if len(p_wrong) < 10 or np.linalg.matrix_rank(design) < 3:
        return AuditFigure(None, len(p_wrong), False)
    scores = -logit(p_wrong)
    found = np.linalg.lstsq(design, scores, rcond=None)[0]
    variance = ((scores - design @ found) ** 2).sum() / (len(scores) - 3)
    error = float(np.sqrt(variance * np.linalg.inv(design.T @ design)[2, 2]))
    slope = float(found[2])
    return AuditFigure(slope, len(scores), slope > 2 * error)


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


# Whether a PRM is right for the wrong reason: every audit with its figure, its count, and whether its alarm rings.


MIN_CASES = 30
GATING_KINDS = frozenset({"reserve", "gold", "canary"})  # what judges here: figures of such a PRM are worth nothing
_SURE_ALARM = 0.3
_PLACES = 6


@dataclass(frozen=True)
class TraceOutcomes:
    """Per trace of what is judged: the domain's number, and whether its answer is right, as far as that is known."""

    domains: Sequence[str]
    domain: Sequence[int]
    is_answer_right: Sequence[bool | None]


def build_audit_report(
    judged: JudgedTraces, outcomes: TraceOutcomes, *, contamination: dict[str, Any]
) -> dict[str, Any]:
    """JSON; `alarms` names the audits that ring, `said` those of them that let pass and are told there."""
    found = {
        **_audit_collapse(judged, outcomes),
        **_audit_confidence(judged, outcomes),
        **_audit_shortcut(judged),
        "contamination": _audit_contamination(contamination),
    }
    return {
        "audits": found,
        "domains": _audit_transfer(judged, outcomes),
        "alarms": sorted(name for name, each in found.items() if each["is_alarming"]),
        "said": sorted(name for name, each in found.items() if each["is_alarming"] and not each.get("holds", True)),
    }


def _audit_contamination(told: dict[str, Any]) -> dict[str, Any]:
    """Of a PRM that was trained elsewhere nothing is known, and nothing rings."""
    found = {each["kind"] for each in told.get("judges", []) if each["n_equal"] + each["n_overlapping"]}
    return {**told, "is_alarming": bool(found), "holds": not found.isdisjoint(GATING_KINDS)}


def _audit_collapse(judged: JudgedTraces, outcomes: TraceOutcomes) -> dict[str, Any]:
    is_known = np.array([each is not None for each in outcomes.is_answer_right], dtype=np.bool_)
    is_right = np.array([bool(each) for each in outcomes.is_answer_right], dtype=np.bool_)
    known = judged.keep(is_known)
    ratio = last_step_ratio(p_wrong=known.p_wrong, lengths=known.lengths, is_answer_right=is_right[is_known])
    labelled = known.labelled()
    kept = mask_labeled(lengths=known.lengths, first_errors=known.truth)
    slope = outcome_slope(
        p_wrong=labelled.p_wrong,
        is_wrong=labelled.is_wrong,
        is_answer_right=np.repeat(is_right[is_known], known.lengths)[kept],
    )
    return {
        "last_step_ratio": _audit_to_json(ratio),
        "outcome_slope": _audit_to_json(slope),
        "auc_right_answers": {**estimate_to_json(_auc(judged.keep(is_known & is_right), None)), "is_alarming": False},
        "auc_wrong_answers": {**estimate_to_json(_auc(known, ~is_right[is_known])), "is_alarming": False},
    }


def _auc(judged: JudgedTraces, is_case: Bools | None) -> Estimate:
    """Of traces by P(some step wrong); without cases told, those with an error."""
    n = len(judged.lengths)
    passed = np.bincount(judged.traces, weights=np.log1p(-np.minimum(judged.p_wrong, 1 - 1e-9)), minlength=n)
    nothing, cases = np.zeros(n, dtype=np.int64), judged.truth != NO_ERROR if is_case is None else is_case
    return concordance.auc(
        LabeledSteps(1 - np.exp(passed), cases, np.zeros(n), nothing, np.arange(n), judged.problems, judged.sources)
    )


def _audit_confidence(judged: JudgedTraces, outcomes: TraceOutcomes) -> dict[str, Any]:
    steps = judged.labelled()
    sure = error_shares.false_confidence_share(steps)
    told = {**estimate_to_json(sure), "is_alarming": _is_alarming(sure)}
    domain = np.array(outcomes.domain, dtype=np.int64)[steps.traces]
    told["domains"] = {
        name: estimate_to_json(_confident_share(steps, domain == n)) for n, name in enumerate(outcomes.domains)
    }
    told["places"] = {
        str(place + 1): estimate_to_json(_confident_share(steps, steps.indexes == place))
        for place in range(min(int(steps.indexes.max(initial=-1)) + 1, _PLACES))
    }
    return {"false_confidence": told}


def _confident_share(steps: LabeledSteps, is_kept: Bools) -> Estimate:
    return error_shares.share_of_steps(steps, is_case=steps.is_wrong & is_kept, is_counted=1 - steps.p_wrong >= 0.9)


def _is_alarming(sure: Estimate) -> bool:
    is_enough = sure.counts.pairable >= MIN_CASES
    return is_enough and sure.interval is not None and sure.interval.low > _SURE_ALARM


def _audit_shortcut(judged: JudgedTraces) -> dict[str, Any]:
    steps = judged.labelled()
    matched, alone = concordance.length_matched_auc(steps), concordance.length_only_auc(steps)
    is_enough = int(steps.is_wrong.sum()) >= MIN_CASES and matched.interval is not None
    is_alarming = bool(is_enough and matched.interval and matched.interval.high < 0.5)
    return {
        "length_matched": {**estimate_to_json(matched), "is_alarming": is_alarming},
        "length_alone": {**estimate_to_json(alone), "is_alarming": False},
    }


def _audit_transfer(judged: JudgedTraces, outcomes: TraceOutcomes) -> dict[str, Any]:
    """The length-matched figure of every domain, and whether anything may be said of all of them."""
    domain = np.array(outcomes.domain, dtype=np.int64)
    found = {
        name: concordance.length_matched_auc(judged.keep(domain == n).labelled())
        for n, name in enumerate(outcomes.domains)
    }
    figures = {name: estimate_to_json(each) for name, each in found.items()}
    return {"figures": figures, "may_claim_all": holds_in_every_domain(figures)}


def holds_in_every_domain(figures: dict[str, Any]) -> bool:
    """Nothing is claimed of all domains while the worst one's interval holds .5, or one has none."""
    return all(each["interval"] is not None and each["interval"][0] > 0.5 for each in figures.values())


def _audit_to_json(found: AuditFigure) -> dict[str, Any]:
    is_alarming = bool(found.is_alarming and found.n >= MIN_CASES)
    return {"value": found.value, "n": found.n, "interval": None, "is_alarming": is_alarming}


def estimate_to_json(found: Estimate) -> dict[str, Any]:
    """An estimate as JSON keeps it."""
    interval = [found.interval.low, found.interval.high] if found.interval else None
    reason = found.reason or (found.interval_reason if found.interval is None else None)
    return {"value": found.value, "interval": interval, "n": found.counts.pairable, "reason": str(reason or "")}
