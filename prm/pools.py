"""The traces that a batch is drawn from, as arrays. Reads alone; texts are not read again, their sizes are kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from labeling import queue
from labeling.agreement.arrays import Floats, Ints
from labeling.models import Trace
from labeling.models.queue import Arm
from prm import hazards, packing
from prm.models import PRM, Score
from prm.selection.pool import Pool

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
    p_wrong = hazards.calibrated(prm, numbers[:, 0], lengths)
    pool = Pool(
        lengths=lengths,
        hazards=p_wrong,
        words=numbers[:, 1].astype(np.int64),
        characters=numbers[:, 2].astype(np.int64),
        problems=_numbered(columns.problem),
        domains=_numbered(columns.domain),
        is_answer_wrong=np.array(columns.is_answer_wrong, dtype=np.bool_),
    )
    places = np.array([place(prm.project_id, trace) for trace in columns.trace], dtype=np.float64)
    return Drawable(np.array(columns.trace, dtype=np.int64), pool, places, hazards.line(prm).is_fitted)


def of_one(prm: PRM, kept: bytes) -> tuple[Pool, Floats]:
    """One trace as a pool of its own, and its scores as they are kept (NaN for context)."""
    numbers, lengths = packing.unpack([kept])
    p_wrong = hazards.calibrated(prm, numbers[:, 0], lengths)
    nothing = np.zeros(1, dtype=np.int64)
    sizes = numbers[:, 1].astype(np.int64), numbers[:, 2].astype(np.int64)
    return Pool(lengths, p_wrong, *sizes, nothing, nothing, np.zeros(1, dtype=np.bool_)), numbers[:, 0]


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


def _numbered(values: Sequence[object]) -> Ints:
    return (
        np.asarray(np.unique(np.array(values), return_inverse=True)[1], dtype=np.int64)
        if values
        else np.zeros(0, dtype=np.int64)
    )
