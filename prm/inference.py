"""The current PRM, asked from elsewhere: is this trace right, where is it wrong first, which candidate is the best.
Alone changes Use rows: every call is counted by its purpose."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import F

from accounts.models import User
from labeling.models import Project
from prm import hazards, registry
from prm.backends import base
from prm.backends.base import ScorerInput
from prm.backends.transport import RetryPolicy
from prm.models import PRM, PRMUsage
from prm.models.prm import BackendKind, PRMUsagePurpose
from stats.arrays import Floats

RETRY_POLICY = RetryPolicy(timeout=10.0, tries=2)  # somebody waits for the answer
MAX_STEPS = 20_000  # of one call: a request must be answered in seconds


class PRMNotUsable(Exception):
    """There is no PRM to ask, or too much was asked of it. The text is for whoever calls."""


@dataclass(frozen=True)
class TracePrediction:
    """`first_error` holds P(first error at step i), and last P(none); `flagged` is a position, None for no step."""

    p_correct: list[float]
    first_error: list[float]
    p_right: float  # all steps
    flagged: int | None


def score_traces(
    *, project: Project, traces: Sequence[ScorerInput], purpose: str, by: User, now: dt.datetime
) -> tuple[PRM, list[TracePrediction]]:
    """What the current PRM says of these traces."""
    prm = _usable_prm(project, traces, purpose)
    found = base.validate_scores(registry.load_backend(prm, most=RETRY_POLICY).score(traces), traces, prm.semantics)
    _count_usage(prm, purpose, traces, by=by, now=now)
    return prm, [_predict(prm, numbers) for numbers in found]


def rank_candidates(
    *, project: Project, candidates: Sequence[ScorerInput], purpose: str, by: User, now: dt.datetime
) -> tuple[PRM, list[int], list[TracePrediction]]:
    """Places of the candidates, the one that is likeliest right throughout first."""
    prm, verdicts = score_traces(project=project, traces=candidates, purpose=purpose, by=by, now=now)
    order = sorted(range(len(verdicts)), key=lambda place: -verdicts[place].p_right)
    return prm, order, verdicts


def _usable_prm(project: Project, traces: Sequence[ScorerInput], purpose: str) -> PRM:
    if purpose not in PRMUsagePurpose.values:
        raise PRMNotUsable(f"The purpose is one of: {', '.join(PRMUsagePurpose.values)}.")
    if sum(len(trace.steps) for trace in traces) > MAX_STEPS:
        raise PRMNotUsable(f"At most {MAX_STEPS:,} steps in one call.")
    prm = registry.current_prm(project.pk)
    if prm is None:
        raise PRMNotUsable(
            "The project has no current PRM yet. Start a generation, or register one and make it current."
        )
    if prm.backend == BackendKind.PUSHED:
        raise PRMNotUsable("The current PRM's scores are pushed here: it cannot be asked.")
    return prm


def _predict(prm: PRM, scores: Floats) -> TracePrediction:
    """Calibrated on the reserve where that was possible; the flag is at the threshold that was found there."""
    length = np.array([len(scores)], dtype=np.int64)
    raw, found = hazards.raw_hazards(prm, scores, length), hazards.calibrated_hazards(prm, scores, length)
    before = np.concatenate([[1.0], np.cumprod(1 - found)])
    above = np.flatnonzero(raw >= prm.threshold)
    return TracePrediction(
        p_correct=(1 - found).tolist(),
        first_error=[*(before[:-1] * found).tolist(), float(before[-1])],
        p_right=float(before[-1]),
        flagged=int(above[0]) if len(above) else None,
    )


def _count_usage(prm: PRM, purpose: str, traces: Sequence[ScorerInput], *, by: User, now: dt.datetime) -> None:
    """One row a day: a reward loop asks a thousand times a minute."""
    n_steps = sum(len(trace.steps) for trace in traces)
    row, _ = PRMUsage.objects.get_or_create(prm=prm, by=by, purpose=purpose, day=now.date())
    PRMUsage.objects.filter(pk=row.pk).update(n_calls=F("n_calls") + 1, n_steps=F("n_steps") + n_steps)
