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

from labeling.agreement.arrays import Bools, Floats, Ints
from labeling.agreement.result import Estimate
from prm.evaluation import calibration, concordance, processbench, shares, steps
from prm.evaluation.steps import NONE, Labelled

FOLDS = 5
_OF_STEPS: dict[str, Callable[[Labelled], Estimate]] = {
    "auc": concordance.auc,
    "risk_set_auc": concordance.risk_set_auc,
    "risk_set_auc_length_matched": concordance.length_matched_auc,
    "risk_set_auc_length_only": concordance.length_only_matched_auc,
    "ece": calibration.expected_error,
    "over_credit": shares.over_credit,
    "over_blame": shares.over_blame,
    "false_confidence": shares.false_confidence,
}


@dataclass(frozen=True)
class Judged:
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

    def keep(self, is_kept: Bools) -> "Judged":
        """Some of the traces."""
        rows = is_kept[self.traces]
        return Judged(
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
        return steps.is_labelled(lengths=self.lengths, first_errors=self.truth)

    def labelled(self) -> Labelled:
        return steps.of_traces(
            p_wrong=self.p_wrong,
            characters=self.characters,
            lengths=self.lengths,
            first_errors=self.truth,
            problems=self.problems,
            sources=self.sources,
        )


def of_traces(judged: Judged, *, threshold: float) -> dict[str, Estimate]:
    found = processbench.judge(
        p_wrong=judged.p_wrong,
        lengths=judged.lengths,
        truth=judged.truth,
        problems=judged.problems,
        threshold=threshold,
    )
    return {**_first_errors(found), **of_steps(judged.labelled())}


def of_steps(labelled: Labelled) -> dict[str, Estimate]:
    return {name: of(labelled) for name, of in _OF_STEPS.items()}


def by_threshold_of_others(judged: Judged) -> dict[str, Estimate]:
    """Where there are no other traces: each fold of problems is judged at the threshold of the other folds."""
    shifted = judged.p_wrong.copy()
    fold = judged.problems % FOLDS
    for each in range(FOLDS):
        others = judged.keep(fold != each)
        if len(others.lengths) and (fold == each).any():
            rows = (fold == each)[judged.traces]
            shifted[rows] = judged.p_wrong[rows] - best_threshold(others)
    found = processbench.judge(
        p_wrong=shifted, lengths=judged.lengths, truth=judged.truth, problems=judged.problems, threshold=0.0
    )
    return {**_first_errors(found), **of_steps(judged.labelled())}


def best_threshold(judged: Judged) -> float:
    return processbench.best_threshold(p_wrong=judged.p_wrong, lengths=judged.lengths, truth=judged.truth)


def counts(judged: Judged) -> dict[str, int]:
    labelled = judged.labelled()
    return {
        "traces": len(judged.lengths),
        "erroneous": int((judged.truth != NONE).sum()),
        "correct": int((judged.truth == NONE).sum()),
        "problems": len(np.unique(judged.problems)),
        "steps": len(labelled.p_wrong),
        "wrong_steps": int(labelled.is_wrong.sum()),
    }


def _first_errors(found: processbench.ProcessBench) -> dict[str, Estimate]:
    return {
        "f1": found.f1,
        "accuracy_erroneous": found.accuracy_erroneous,
        "accuracy_correct": found.accuracy_correct,
    }
