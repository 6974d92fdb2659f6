"""Everything that is said of a PRM after it has been judged, and the claims among it: one table, never one number.

    first errors   F1, accuracy on erroneous and on correct traces, at a threshold found on other problems
    steps          AUC, risk-set AUC, the length-matched form, the same for length alone, ECE, over-credit, over-blame,
                   false confidence

Only steps up to and with a trace's first error carry a label. The length-only figure is computed as the length-matched
one, with log characters in the PRM's place.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prm.evaluation import calibration, concordance, error_shares, labeled_steps, processbench
from prm.evaluation.labeled_steps import NO_ERROR, LabeledSteps
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
    """Traces with their true first error (NONE for none), steps laid end to end; problems and sources from 0."""

    p_wrong: Floats
    characters: Ints
    lengths: Ints
    truth: Ints
    problems: Ints
    sources: Ints

    @property
    def traces(self) -> Ints:
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def keep(self, is_kept: Bools) -> "JudgedTraces":
        """Some of the traces."""
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
    def is_labelled(self) -> Bools:
        """Which of all steps carry a label."""
        return labeled_steps.mask_labeled(lengths=self.lengths, first_errors=self.truth)

    def labelled(self) -> LabeledSteps:
        return labeled_steps.build_labeled_steps(
            p_wrong=self.p_wrong,
            characters=self.characters,
            lengths=self.lengths,
            first_errors=self.truth,
            problems=self.problems,
            sources=self.sources,
        )


def report_on_traces(judged: JudgedTraces, *, threshold: float) -> dict[str, Estimate]:
    found = processbench.evaluate_processbench(
        p_wrong=judged.p_wrong,
        lengths=judged.lengths,
        truth=judged.truth,
        problems=judged.problems,
        threshold=threshold,
    )
    return {**_first_error_figures(found), **report_on_steps(judged.labelled())}


def report_on_steps(labelled: LabeledSteps) -> dict[str, Estimate]:
    return {name: of(labelled) for name, of in _STEP_FIGURES.items()}


def report_across_folds(judged: JudgedTraces) -> dict[str, Estimate]:
    """Where there are no other traces: each fold of problems is judged at the threshold of the other folds."""
    shifted = judged.p_wrong.copy()
    fold = judged.problems % FOLDS
    for each in range(FOLDS):
        others = judged.keep(fold != each)
        if len(others.lengths) and (fold == each).any():
            rows = (fold == each)[judged.traces]
            shifted[rows] = judged.p_wrong[rows] - find_threshold(others)
    found = processbench.evaluate_processbench(
        p_wrong=shifted, lengths=judged.lengths, truth=judged.truth, problems=judged.problems, threshold=0.0
    )
    return {**_first_error_figures(found), **report_on_steps(judged.labelled())}


def find_threshold(judged: JudgedTraces) -> float:
    return processbench.find_best_threshold(p_wrong=judged.p_wrong, lengths=judged.lengths, truth=judged.truth)


def count_judged(judged: JudgedTraces) -> dict[str, int]:
    labelled = judged.labelled()
    return {
        "traces": len(judged.lengths),
        "erroneous": int((judged.truth != NO_ERROR).sum()),
        "correct": int((judged.truth == NO_ERROR).sum()),
        "problems": len(np.unique(judged.problems)),
        "steps": len(labelled.p_wrong),
        "wrong_steps": int(labelled.is_wrong.sum()),
    }


def _first_error_figures(found: processbench.ProcessBenchResult) -> dict[str, Estimate]:
    return {
        "f1": found.f1,
        "accuracy_erroneous": found.accuracy_erroneous,
        "accuracy_correct": found.accuracy_correct,
    }
