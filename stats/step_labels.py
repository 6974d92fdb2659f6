"""Step labels that follow from the consensus on the first error E.

    t < E   the raters' label, with P(E > t) as its confidence
    t = E   -1, with P(E = t)
    t > E   no label

Raters who go on after another's first error are survivors: their +1 behind it is right in a quarter of all cases. So a
survivor's rating never becomes a label by itself, and each label says how many raters were still at risk at its step.

Order of stopping as in discrete-time survival: D. R. Cox (1972), doi:10.1111/j.2517-6161.1972.tb00899.x; that only the
first error has a clear meaning: J. Uesato et al. (2022), arXiv:2211.14275; H. Lightman et al. (2023), arXiv:2305.20050.
"""

from dataclasses import dataclass

import numpy as np

from stats import first_error_dawid_skene
from stats.arrays import Bools, Floats, Ints
from stats.first_error_reports import FirstErrorPlaces

NEGATIVE, NEUTRAL, POSITIVE = -1, 0, 1


@dataclass(frozen=True)
class StepLabels:
    """Over places; a label counts only where `has_label`, and a "none" place never has one."""

    labels: Ints
    has_label: Bools
    confidences: Floats
    n_at_risk: Ints


def derive_step_labels(*, first_errors: Ints, posterior: Floats, there: FirstErrorPlaces, counts: Floats) -> StepLabels:
    """`first_errors` per trace (T for none); `counts` (places, 3): ratings -1, 0, +1 of raters still at risk."""
    error = first_errors[there.traces]
    is_error, is_before = there.steps == error, there.steps < error
    approved = counts[:, 1] + counts[:, 2]
    raters_say = np.where(counts[:, 2] >= counts[:, 1], POSITIVE, NEUTRAL)
    later = first_error_dawid_skene.probability_not_before(posterior, there) - posterior
    return StepLabels(
        labels=np.where(is_error, NEGATIVE, raters_say),
        has_label=~there.is_none & (is_error | (is_before & (approved > 0))),
        confidences=np.clip(np.where(is_error, posterior, later), 0.0, 1.0),
        n_at_risk=counts.sum(axis=1).astype(np.int64),
    )
