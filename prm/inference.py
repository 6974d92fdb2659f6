"""The current PRM as a service for other programs: score traces, flag the first error, rank candidates.

Every call is counted by its purpose, in PRMUsage rows that only this module changes.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import F

from accounts.models import User
from labeling.models import Project
from prm import registry
from prm.backends import base
from prm.backends.base import ScorerInput
from prm.backends.remote import RetryPolicy
from prm.models import PRM, PRMUsage
from prm.models.prm import BackendKind, PRMUsagePurpose
from prm.selection import hazards
from stats.arrays import Floats

RETRY_POLICY = RetryPolicy(timeout=10.0, tries=2)  # the caller waits for the answer
MAX_STEPS = 20_000  # per call, to answer within seconds


class PRMNotUsable(Exception):
    """The project has no PRM that can answer, or the request is invalid. The message is for the caller."""


@dataclass(frozen=True)
class TracePrediction:
    """`first_error` is P(first error at step i), then P(none); `flagged` is the index of a step or None."""

    p_correct: list[float]
    first_error: list[float]
    p_right: float  # of the whole trace
    flagged: int | None


def score_traces(
    *, project: Project, traces: Sequence[ScorerInput], purpose: str, by: User, now: dt.datetime
) -> tuple[PRM, list[TracePrediction]]:
    """Return the current PRM and its prediction for each trace."""
    prm = _find_usable_prm(project, traces, purpose)
    backend = registry.load_backend(prm, limit=RETRY_POLICY)
    scores = base.validate_scores(backend.score(traces), traces, prm.semantics)
    _count_usage(prm, purpose, traces, by=by, now=now)
    return prm, [_predict(prm, numbers) for numbers in scores]


def rank_candidates(
    *, project: Project, candidates: Sequence[ScorerInput], purpose: str, by: User, now: dt.datetime
) -> tuple[PRM, list[int], list[TracePrediction]]:
    """Return the current PRM, the candidates' indexes by falling P(all steps right), and their predictions."""
    prm, predictions = score_traces(project=project, traces=candidates, purpose=purpose, by=by, now=now)
    order = sorted(range(len(predictions)), key=lambda index: -predictions[index].p_right)
    return prm, order, predictions


def _find_usable_prm(project: Project, traces: Sequence[ScorerInput], purpose: str) -> PRM:
    if purpose not in PRMUsagePurpose.values:
        raise PRMNotUsable(f"Unknown purpose. Use one of: {', '.join(PRMUsagePurpose.values)}.")
    if sum(len(trace.steps) for trace in traces) > MAX_STEPS:
        raise PRMNotUsable(f"A request can contain up to {MAX_STEPS:,} steps. Split it into several requests.")
    prm = registry.current_prm(project.pk)
    if prm is None:
        raise PRMNotUsable("The project has no current PRM. Start a generation, or register a PRM and promote it.")
    if prm.backend == BackendKind.PUSHED:
        raise PRMNotUsable("The current PRM has only pushed scores and cannot score new traces. Promote another PRM.")
    return prm


def _predict(prm: PRM, scores: Floats) -> TracePrediction:
    """Predict from calibrated hazards; flag by raw ones, because the threshold was found on those."""
    length = np.array([len(scores)], dtype=np.int64)
    raw = hazards.raw_hazards(scores, length, prm.semantics, prm.calibration)
    calibrated = hazards.apply_calibration(raw, prm.calibration)
    still_right = np.concatenate([[1.0], np.cumprod(1 - calibrated)])
    flagged = np.flatnonzero(raw >= prm.threshold)
    return TracePrediction(
        p_correct=(1 - calibrated).tolist(),
        first_error=[*(still_right[:-1] * calibrated).tolist(), float(still_right[-1])],
        p_right=float(still_right[-1]),
        flagged=int(flagged[0]) if len(flagged) else None,
    )


def _count_usage(prm: PRM, purpose: str, traces: Sequence[ScorerInput], *, by: User, now: dt.datetime) -> None:
    """Count in one row per day: a reward loop calls a thousand times a minute."""
    n_steps = sum(len(trace.steps) for trace in traces)
    row, _ = PRMUsage.objects.get_or_create(prm=prm, by=by, purpose=purpose, day=now.date())
    PRMUsage.objects.filter(pk=row.pk).update(n_calls=F("n_calls") + 1, n_steps=F("n_steps") + n_steps)
