"""The traces that a batch is drawn from, as arrays. Reads alone; texts are not read again, their sizes are kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from labeling import queue
from labeling.agreement.arrays import Bools, Floats, Ints
from labeling.models import Trace
from labeling.models.queue import Arm
from prm import packing
from prm.models import PRM, Score
from prm.selection import platt, semantics
from prm.selection.platt import Calibration
from prm.selection.pool import Pool
from prm.selection.semantics import Semantics

_CHUNK = 5000
_SCALE = 2.0**62


@dataclass(frozen=True)
class Drawable:
    """A pool with the ids of its traces, and the place of each in the uniform arm's fixed order."""

    trace_ids: Ints
    pool: Pool
    places: Floats
    is_calibrated: bool


@dataclass
class _Columns:
    trace: list[int]
    problem: list[int]
    domain: list[str]
    is_answer_wrong: list[bool]
    kept: list[bytes]


def of(prm: PRM) -> Drawable:
    """Unbegun traces of the work that this PRM has scored. A problem of the reserve is never among them."""
    columns = _read(prm, queue.drawable(project_id=prm.project_id))
    numbers, lengths = packing.unpack(columns.kept)
    hazards, is_calibrated = _hazards(prm, numbers[:, 0], lengths)
    pool = Pool(
        lengths=lengths,
        hazards=hazards,
        words=numbers[:, 1].astype(np.int64),
        characters=numbers[:, 2].astype(np.int64),
        problems=_numbered(columns.problem),
        domains=_numbered(columns.domain),
        is_answer_wrong=np.array(columns.is_answer_wrong, dtype=np.bool_),
    )
    places = np.array([place(prm.project_id, trace) for trace in columns.trace], dtype=np.float64)
    return Drawable(np.array(columns.trace, dtype=np.int64), pool, places, is_calibrated)


def of_one(prm: PRM, kept: bytes) -> tuple[Pool, Floats]:
    """One trace as a pool of its own, and its scores as they are kept (NaN for context)."""
    numbers, lengths = packing.unpack([kept])
    hazards, _ = _hazards(prm, numbers[:, 0], lengths)
    nothing = np.zeros(1, dtype=np.int64)
    sizes = numbers[:, 1].astype(np.int64), numbers[:, 2].astype(np.int64)
    return Pool(lengths, hazards, *sizes, nothing, nothing, np.zeros(1, dtype=np.bool_)), numbers[:, 0]


def place(project_id: int, trace_id: int) -> float:
    """Where a trace stands in the uniform walk, in [0, 1): the order in which the uniform lane is read from its top."""
    return 1.0 - queue.fixed_key(project_id=project_id, arm=Arm.UNIFORM, trace_id=trace_id) / _SCALE


def _read(prm: PRM, ids: Sequence[int]) -> _Columns:
    columns = _Columns([], [], [], [], [])
    for part in _parts(ids):
        scores = dict(Score.objects.filter(prm=prm, trace__in=part).values_list("trace_id", "numbers"))
        rows = Trace.objects.filter(pk__in=part, problem__is_reserve=False, n_steps__gt=0).order_by("pk")
        for pk, problem, domain, is_right in rows.values_list("pk", "problem_id", "problem__domain", "is_right"):
            if pk in scores:
                columns.trace.append(pk)
                columns.problem.append(problem)
                columns.domain.append(domain)
                columns.is_answer_wrong.append(is_right is False)
                columns.kept.append(bytes(scores[pk]))
    return columns


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]


def _hazards(prm: PRM, scores: Floats, lengths: Ints) -> tuple[Floats, bool]:
    """Calibrated on the reserve where that was possible. Context cannot be wrong: its hazard is nothing."""
    is_context = np.isnan(scores)
    filled, starts = _filled(scores, is_context, lengths), np.cumsum(lengths) - lengths
    found = semantics.hazards(scores=filled, starts=starts, semantics=Semantics(prm.semantics))
    line = prm.calibration or {}
    calibration = Calibration(
        intercept=line.get("intercept", 0.0),
        slope=line.get("slope", 1.0),
        n_traces=line.get("n", 0),
        is_fitted=line.get("is_fitted", False),
    )
    told = platt.apply(hazards=found, calibration=calibration)
    return np.where(is_context, 0.0, told), calibration.is_fitted


def _filled(scores: Floats, is_context: Bools, lengths: Ints) -> Floats:
    """Context takes the value of the step before it, so that a value that falls over context falls once."""
    if not is_context.any():
        return scores
    at = np.where(is_context, -1, np.arange(len(scores)))
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    last = np.maximum.accumulate(at)
    return np.where(last >= starts, scores[np.maximum(last, 0)], 0.5)


def _numbered(values: Sequence[object]) -> Ints:
    return (
        np.asarray(np.unique(np.array(values), return_inverse=True)[1], dtype=np.int64)
        if values
        else np.zeros(0, dtype=np.int64)
    )
