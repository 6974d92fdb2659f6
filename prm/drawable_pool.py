"""The traces that a batch is drawn from, as arrays. Step sizes are stored with the scores, so no text is read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labeling import queue
from labeling.models import Trace
from labeling.models.queue import SamplingSource
from prm import hazards, score_encoding
from prm.models import PRM, Score
from prm.selection.pool import Pool
from stats.arrays import Floats, Ints

_CHUNK = 5000
_KEY_RANGE = 2.0**62


@dataclass(frozen=True)
class DrawablePool:
    """A pool with the ids of its traces and their positions in the uniform walk."""

    trace_ids: Ints
    pool: Pool
    places: Floats


def load_drawable_pool(prm: PRM) -> DrawablePool:
    """Load the unopened traces that this PRM has scored, without those of the held-out set."""
    rows = list(_load_scored_traces(prm, queue.list_drawable_traces(project_id=prm.project_id)))
    numbers, lengths = score_encoding.decode_scores([row.numbers for row in rows])
    pool = Pool(
        lengths=lengths,
        hazards=hazards.calibrated_hazards(prm, numbers[:, 0], lengths),
        words=numbers[:, 1].astype(np.int64),
        characters=numbers[:, 2].astype(np.int64),
        problems=_number_values([row.problem for row in rows]),
        domains=_number_values([row.domain for row in rows]),
        is_answer_wrong=np.array([row.is_right is False for row in rows], dtype=np.bool_),
    )
    places = [uniform_walk_position(prm.project_id, row.trace) for row in rows]
    trace_ids = np.array([row.trace for row in rows], dtype=np.int64)
    return DrawablePool(trace_ids, pool, np.array(places, dtype=np.float64))


def load_pool_of_trace(prm: PRM, encoded: bytes) -> tuple[Pool, Floats]:
    """Return one scored trace as a pool of its own, and its raw scores (NaN for context)."""
    numbers, lengths = score_encoding.decode_scores([encoded])
    p_wrong = hazards.calibrated_hazards(prm, numbers[:, 0], lengths)
    zero = np.zeros(1, dtype=np.int64)
    sizes = numbers[:, 1].astype(np.int64), numbers[:, 2].astype(np.int64)
    return Pool(lengths, p_wrong, *sizes, zero, zero, np.zeros(1, dtype=np.bool_)), numbers[:, 0]


def uniform_walk_position(project_id: int, trace_id: int) -> float:
    """Return a trace's position in [0, 1) in the uniform walk, the order of the uniform lane from its top."""
    key = queue.shuffle_key(project_id=project_id, arm=SamplingSource.UNIFORM, trace_id=trace_id)
    return 1.0 - key / _KEY_RANGE


class _ScoredTrace(NamedTuple):
    trace: int
    problem: int
    domain: str
    is_right: bool | None
    numbers: bytes


def _load_scored_traces(prm: PRM, ids: Sequence[int]) -> Iterator[_ScoredTrace]:
    for start in range(0, len(ids), _CHUNK):
        part = ids[start : start + _CHUNK]
        scores = dict(Score.objects.filter(prm=prm, trace__in=part).values_list("trace_id", "numbers"))
        rows = Trace.objects.filter(pk__in=scores, problem__is_reserve=False, n_steps__gt=0).order_by("pk")
        for row in rows.values_list("pk", "problem_id", "problem__domain", "is_right"):
            yield _ScoredTrace(*row, bytes(scores[row[0]]))


def _number_values(values: Sequence[object]) -> Ints:
    """Number the distinct values from 0."""
    if not values:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(np.unique(np.array(values), return_inverse=True)[1], dtype=np.int64)
