"""Measure the bias of the headline under active selection and adaptive overlap.

A policy selects 80 % of the labeled traces and prefers those with errors; a trace gets a third label if first errors
differ. The headline uses the first two submissions of the audit slice. It is compared with the uniform sampling source
and with all labels pooled.
"""

from dataclasses import dataclass

import numpy as np

from bench import simulated_raters
from prm.selection import draws
from prm.selection.draws import DrawArm, DrawRules
from stats import agreement, first_error_reports, rating_patterns
from stats.arrays import Bools
from stats.first_error_reports import ReportArrays

_TRACES, _READ = 8_000, 3_000


@dataclass(frozen=True)
class Shift:
    """Mean difference to the whole pool with two labels per trace."""

    figure: str
    headline: float
    uniform_arm: float
    pooled: float


def measure(*, seeds: int = 20) -> list[Shift]:
    rows = [_differences(seed) for seed in range(seeds)]
    figures = list(rows[0][0])
    return [
        Shift(figure, *(float(np.mean([row[side][figure] for row in rows])) for side in range(3))) for figure in figures
    ]


def _differences(seed: int) -> list[dict[str, float]]:
    crowd = simulated_raters.simulate_crowd(traces=_TRACES, raters_per_trace=3, kind="correlated", seed=seed)
    reports, turn = crowd.reports, np.tile(np.arange(3), _TRACES)
    chosen = _chosen(crowd.truth < reports.lengths, seed)
    ends = reports.ends.reshape(_TRACES, 3)
    is_wanted = (turn < 2) | (ends[:, 0] != ends[:, 1])[reports.traces]
    plain = _figures(reports, turn < 2)
    others = [_figures(reports, chosen[name][reports.traces] & (turn < 2)) for name in ("slice", "arm")]
    others.append(_figures(reports, chosen["read"][reports.traces] & is_wanted))
    return [{figure: other[figure] - plain[figure] for figure in plain} for other in others]


def _chosen(has_error: Bools, seed: int) -> dict[str, Bools]:
    """Return which traces were labeled, drawn by the uniform source, and part of the audit slice."""
    random = np.random.default_rng(seed)
    places = random.random(_TRACES)
    batch = draws.draw_in_order(
        scores=np.where(has_error, 1.0, 0.7) * random.uniform(0.7, 1.3, _TRACES),
        problems=np.arange(_TRACES),
        domains=np.zeros(_TRACES, dtype=np.int64),
        places=places,
        size=_READ,
        rules=DrawRules(),
        random=random,
    )
    is_uniform, is_read = np.zeros(_TRACES, dtype=np.bool_), np.zeros(_TRACES, dtype=np.bool_)
    is_read[[draw.trace for draw in batch]] = True
    is_uniform[[draw.trace for draw in batch if draw.arm is DrawArm.UNIFORM]] = True
    return {
        "read": is_read,
        "arm": is_uniform,
        "slice": draws.mask_audit_slice(places=places, is_drawn=is_read, is_uniform=is_uniform),
    }


def _figures(reports: ReportArrays, kept: Bools) -> dict[str, float]:
    part = ReportArrays(
        traces=reports.traces[kept],
        raters=reports.raters[kept],
        ends=reports.ends[kept],
        is_censored=reports.is_censored[kept],
        lengths=reports.lengths,
        problems=reports.problems,
        domains=reports.domains,
    )
    votes = first_error_reports.collect_step_votes(part, first_error_reports.enumerate_places(part.lengths))
    steps = rating_patterns.count_patterns(units=votes.places, labels=np.where(votes.is_negative, 0, 2))
    places = agreement.estimate_first_error_agreement(part)
    found = agreement.estimate_step_statistics(steps) | {
        "first_error_exact": places.exact,
        "first_error_within_one": places.within_one,
        "has_error_kappa": places.has_error_kappa,
    }
    return {name: estimate.value or 0.0 for name, estimate in found.items()}
