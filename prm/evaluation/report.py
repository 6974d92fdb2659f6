"""All figures of a PRM's evaluation. A claim needs the whole table, never one figure.

    first errors   F1, accuracy on erroneous and on correct traces, at a threshold found on other problems
    steps          AUC, risk-set AUC, the length-matched form, the same for length only, ECE, missed errors
                   ("over_credit"), false alarms ("over_blame"), false confidence

Only steps up to and including a trace's first error carry a label. The length-only figure is the length-matched one
with log characters in place of the PRM's scores.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from prm.evaluation import calibration, concordance, error_shares, processbench
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces, LabeledSteps
from stats.estimates import Estimate

FOLDS = 5
_STEP_FIGURES: dict[str, Callable[[LabeledSteps], Estimate]] = {
    "auc": concordance.auc,
    "risk_set_auc": concordance.risk_set_auc,
    "risk_set_auc_length_matched": concordance.length_matched_auc,
    "risk_set_auc_length_only": concordance.length_only_matched_auc,
    "ece": calibration.expected_calibration_error,
    "over_credit": error_shares.missed_error_share,
    "over_blame": error_shares.false_alarm_share,
    "false_confidence": error_shares.false_confidence_share,
}


def report_on_traces(judged: JudgedTraces, *, threshold: float) -> dict[str, Estimate]:
    """Return every figure at a threshold that comes from other traces."""
    first_errors = processbench.evaluate_processbench(judged, threshold=threshold)
    return {**vars(first_errors), **report_on_steps(judged.labeled_steps())}


def report_across_folds(judged: JudgedTraces) -> dict[str, Estimate]:
    """Return every figure, with each fold of problems at the threshold of the other folds."""
    margins = judged.p_wrong.copy()  # P(wrong) minus the threshold
    fold = judged.problems % FOLDS
    for n in range(FOLDS):
        others = judged.keep(fold != n)
        if len(others.lengths) and (fold == n).any():
            rows = (fold == n)[judged.traces]
            margins[rows] = judged.p_wrong[rows] - processbench.find_best_threshold(others)
    first_errors = processbench.evaluate_processbench(replace(judged, p_wrong=margins), threshold=0.0)
    return {**vars(first_errors), **report_on_steps(judged.labeled_steps())}


def report_on_steps(steps: LabeledSteps) -> dict[str, Estimate]:
    return {name: compute(steps) for name, compute in _STEP_FIGURES.items()}


def count_judged(judged: JudgedTraces) -> dict[str, int]:
    steps = judged.labeled_steps()
    return {
        "traces": len(judged.lengths),
        "erroneous": int((judged.truth != NO_ERROR).sum()),
        "correct": int((judged.truth == NO_ERROR).sum()),
        "problems": len(np.unique(judged.problems)),
        "steps": len(steps.p_wrong),
        "wrong_steps": int(steps.is_wrong.sum()),
    }
