"""All figures of a PRM's evaluation. A claim needs the whole table, never one figure.

    first errors   F1, accuracy on erroneous and on correct traces, at a threshold found on other problems
    steps          AUC, risk-set AUC, the length-matched form, the same for length only, ECE, missed errors
                   ("over_credit"), false alarms ("over_blame"), false confidence

Only steps up to and including a trace's first error carry a label. The length-only figure is the length-matched one
with log characters in place of the PRM's scores.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prm.evaluation import calibration, concordance, error_shares, labeled_steps, processbench
from prm.evaluation.labeled_steps import NO_ERROR, LabeledSteps
from prm.evaluation.processbench import ProcessBenchResult
from stats.arrays import Bools, Floats, Ints
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


@dataclass(frozen=True)
class JudgedTraces:
    """Scored traces with their true first errors (or NO_ERROR), steps end to end; problems and sources from 0."""

    p_wrong: Floats
    characters: Ints
    lengths: Ints
    truth: Ints
    problems: Ints
    sources: Ints

    @property
    def traces(self) -> Ints:
        """The trace of every step."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def keep(self, is_kept: Bools) -> "JudgedTraces":
        """Return some of the traces."""
        rows = is_kept[self.traces]
        return JudgedTraces(
            self.p_wrong[rows],
            self.characters[rows],
            self.lengths[is_kept],
            self.truth[is_kept],
            self.problems[is_kept],
            self.sources[is_kept],
        )

    @property
    def is_labeled(self) -> Bools:
        """Which of all steps carry a label."""
        return labeled_steps.mask_labeled(lengths=self.lengths, first_errors=self.truth)

    def labeled_steps(self) -> LabeledSteps:
        return labeled_steps.build_labeled_steps(
            p_wrong=self.p_wrong,
            characters=self.characters,
            lengths=self.lengths,
            first_errors=self.truth,
            problems=self.problems,
            sources=self.sources,
        )


def report_on_traces(judged: JudgedTraces, *, threshold: float) -> dict[str, Estimate]:
    """Return every figure at a threshold that was found on other traces."""
    first_errors = _evaluate_first_errors(judged, judged.p_wrong, threshold)
    return {**vars(first_errors), **report_on_steps(judged.labeled_steps())}


def report_across_folds(judged: JudgedTraces) -> dict[str, Estimate]:
    """Return every figure, with each fold of problems at the threshold of the other folds."""
    margins = judged.p_wrong.copy()  # P(wrong) minus the threshold
    fold = judged.problems % FOLDS
    for n in range(FOLDS):
        others = judged.keep(fold != n)
        if len(others.lengths) and (fold == n).any():
            rows = (fold == n)[judged.traces]
            margins[rows] = judged.p_wrong[rows] - find_threshold(others)
    first_errors = _evaluate_first_errors(judged, margins, 0.0)
    return {**vars(first_errors), **report_on_steps(judged.labeled_steps())}


def _evaluate_first_errors(judged: JudgedTraces, p_wrong: Floats, threshold: float) -> ProcessBenchResult:
    return processbench.evaluate_processbench(
        p_wrong=p_wrong, lengths=judged.lengths, truth=judged.truth, problems=judged.problems, threshold=threshold
    )


def report_on_steps(steps: LabeledSteps) -> dict[str, Estimate]:
    return {name: compute(steps) for name, compute in _STEP_FIGURES.items()}


def find_threshold(judged: JudgedTraces) -> float:
    return processbench.find_best_threshold(p_wrong=judged.p_wrong, lengths=judged.lengths, truth=judged.truth)


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
