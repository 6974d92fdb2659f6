"""The traces that a batch is drawn from, as arrays. Reads alone; texts are not read again, their sizes are kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from labeling import queue
from labeling.models import Trace
from labeling.models.queue import SamplingSource
from prm import hazards, score_encoding
from prm.models import PRM, Score
from prm.selection.pool import Pool
from stats.arrays import Floats, Ints

_CHUNK = 5000
_SCALE = 2.0**62


@dataclass(frozen=True)
class DrawablePool:
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


def load_drawable_pool(prm: PRM) -> DrawablePool:
    """Unbegun traces of the work that this PRM has scored. A problem of the reserve is never among them."""
    columns = _load_columns(prm, queue.list_drawable_traces(project_id=prm.project_id))
    numbers, lengths = score_encoding.decode_scores(columns.kept)
    p_wrong = hazards.calibrated_hazards(prm, numbers[:, 0], lengths)
    pool = Pool(
        lengths=lengths,
        hazards=p_wrong,
        words=numbers[:, 1].astype(np.int64),
        characters=numbers[:, 2].astype(np.int64),
        problems=_number_values(columns.problem),
        domains=_number_values(columns.domain),
        is_answer_wrong=np.array(columns.is_answer_wrong, dtype=np.bool_),
    )
    places = np.array([uniform_walk_position(prm.project_id, trace) for trace in columns.trace], dtype=np.float64)
    return DrawablePool(np.array(columns.trace, dtype=np.int64), pool, places, hazards.load_calibration(prm).is_fitted)


def load_pool_of_trace(prm: PRM, kept: bytes) -> tuple[Pool, Floats]:
    """One trace as a pool of its own, and its scores as they are kept (NaN for context)."""
    numbers, lengths = score_encoding.decode_scores([kept])
    p_wrong = hazards.calibrated_hazards(prm, numbers[:, 0], lengths)
    nothing = np.zeros(1, dtype=np.int64)
    sizes = numbers[:, 1].astype(np.int64), numbers[:, 2].astype(np.int64)
    return Pool(lengths, p_wrong, *sizes, nothing, nothing, np.zeros(1, dtype=np.bool_)), numbers[:, 0]


def uniform_walk_position(project_id: int, trace_id: int) -> float:
    """Where a trace stands in the uniform walk, in [0, 1): the order in which the uniform lane is read from its top."""
    return 1.0 - queue.shuffle_key(project_id=project_id, arm=SamplingSource.UNIFORM, trace_id=trace_id) / _SCALE


def _load_columns(prm: PRM, ids: Sequence[int]) -> _Columns:
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


def _number_values(values: Sequence[object]) -> Ints:
    return (
        np.asarray(np.unique(np.array(values), return_inverse=True)[1], dtype=np.int64)
        if values
        else np.zeros(0, dtype=np.int64)
    )
