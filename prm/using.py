"""The current PRM, asked from elsewhere: is this trace right, where is it wrong first, which candidate is the best.
Alone changes Use rows: every call is counted by its purpose."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import F

from accounts.models import User
from labeling.agreement.arrays import Floats
from labeling.models import Project
from prm import hazards, registry
from prm.backends import asked
from prm.backends.asked import Trace
from prm.backends.wire import Patience
from prm.models import PRM, Use
from prm.models.prm import BackendKind, Purpose

MOST_PATIENCE = Patience(timeout=10.0, tries=2)  # somebody waits for the answer
MOST_STEPS = 20_000  # of one call: a request must be answered in seconds


class NotUsable(Exception):
    """There is no PRM to ask, or too much was asked of it. The text is for whoever calls."""


@dataclass(frozen=True)
class Verdict:
    """`first_error` holds P(first error at step i), and last P(none); `flagged` is a position, None for no step."""

    p_correct: list[float]
    first_error: list[float]
    p_right: float  # all steps
    flagged: int | None


def score(
    *, project: Project, traces: Sequence[Trace], purpose: str, by: User, now: dt.datetime
) -> tuple[PRM, list[Verdict]]:
    """What the current PRM says of these traces."""
    prm = _usable(project, traces, purpose)
    found = asked.checked(registry.backend_of(prm, most=MOST_PATIENCE).score(traces), traces, prm.semantics)
    _count(prm, purpose, traces, by=by, now=now)
    return prm, [_verdict(prm, numbers) for numbers in found]


def rank(
    *, project: Project, candidates: Sequence[Trace], purpose: str, by: User, now: dt.datetime
) -> tuple[PRM, list[int], list[Verdict]]:
    """Places of the candidates, the one that is likeliest right throughout first."""
    prm, verdicts = score(project=project, traces=candidates, purpose=purpose, by=by, now=now)
    order = sorted(range(len(verdicts)), key=lambda place: -verdicts[place].p_right)
    return prm, order, verdicts


def _usable(project: Project, traces: Sequence[Trace], purpose: str) -> PRM:
    if purpose not in Purpose.values:
        raise NotUsable(f"The purpose is one of: {', '.join(Purpose.values)}.")
    if sum(len(trace.steps) for trace in traces) > MOST_STEPS:
        raise NotUsable(f"At most {MOST_STEPS:,} steps in one call.")
    prm = registry.current(project.pk)
    if prm is None:
        raise NotUsable("The project has no current PRM yet. Start a generation, or register one and make it current.")
    if prm.backend == BackendKind.PUSHED:
        raise NotUsable("The current PRM's scores are pushed here: it cannot be asked.")
    return prm


def _verdict(prm: PRM, scores: Floats) -> Verdict:
    """Calibrated on the reserve where that was possible; the flag is at the threshold that was found there."""
    length = np.array([len(scores)], dtype=np.int64)
    raw, found = hazards.raw(prm, scores, length), hazards.calibrated(prm, scores, length)
    before = np.concatenate([[1.0], np.cumprod(1 - found)])
    above = np.flatnonzero(raw >= prm.threshold)
    return Verdict(
        p_correct=(1 - found).tolist(),
        first_error=[*(before[:-1] * found).tolist(), float(before[-1])],
        p_right=float(before[-1]),
        flagged=int(above[0]) if len(above) else None,
    )


def _count(prm: PRM, purpose: str, traces: Sequence[Trace], *, by: User, now: dt.datetime) -> None:
    """One row a day: a reward loop asks a thousand times a minute."""
    n_steps = sum(len(trace.steps) for trace in traces)
    row, _ = Use.objects.get_or_create(prm=prm, by=by, purpose=purpose, day=now.date())
    Use.objects.filter(pk=row.pk).update(n_calls=F("n_calls") + 1, n_steps=F("n_steps") + n_steps)
