"""The pool of a project: the traces that batches are drawn from, the reading pace, and the audit slice. Writes nothing.

Step sizes are stored with the scores, so no text is read.

Headline figures are computed from the traces of the audit slice: a simple random sample of the pool, as
`prm.selection.draws.mask_audit_slice` defines it. The uniform lane follows the uniform walk from the first day on, so
traces that were opened before or beside a batch count as drawn too. Only drawn traces and the next one on the walk are
read: the cost does not depend on the size of the pool.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from jobs import paging
from labeling import queue
from labeling.models import Assignment, Lane, Manifest, QueueEntry, Trace, TraceDraw
from labeling.models.assignment import AssignmentPurpose, AssignmentState, Population
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterKind
from labeling.models.trace import TraceKind
from labeling.quality import submitted_reports
from prm import labeled_traces, scores
from prm.models import PRM, Score
from prm.selection import acquisitions, draws, hazards
from prm.selection.acquisitions import Pool, ReadingRates
from stats.arrays import Floats, Ints, number_values

_TRACES_PER_QUERY = 5000
_KEY_RANGE = 2.0**62
_ENTRIES_PER_PAGE = 500
_IN_POOL = {
    "trace__withdrawn_at": None,
    "trace__kind": TraceKind.PREGENERATED,
    "trace__problem__is_reserve": False,
}


@dataclass(frozen=True)
class DrawablePool:
    """A pool with the ids of its traces and their positions in the uniform walk."""

    trace_ids: Ints
    pool: Pool
    places: Floats


def load_drawable_pool(prm: PRM) -> DrawablePool:
    """Load the unopened traces that this PRM has scored, except for the held-out set."""
    rows = list(_load_scored_traces(prm, queue.list_drawable_traces(project_id=prm.project_id)))
    numbers, lengths = scores.decode_scores([row.numbers for row in rows])
    pool = Pool(
        lengths=lengths,
        hazards=hazards.calibrated_hazards(numbers[:, 0], lengths, prm.semantics, prm.calibration),
        words=numbers[:, 1].astype(np.int64),
        characters=numbers[:, 2].astype(np.int64),
        problems=number_values([row.problem for row in rows]),
        domains=number_values([row.domain for row in rows]),
        is_answer_wrong=np.array([row.is_right is False for row in rows], dtype=np.bool_),
        is_answer_right=np.array([row.is_right is True for row in rows], dtype=np.bool_),
    )
    places = [uniform_walk_position(prm.project_id, row.trace) for row in rows]
    trace_ids = np.array([row.trace for row in rows], dtype=np.int64)
    return DrawablePool(trace_ids, pool, np.array(places, dtype=np.float64))


def add_disagreement(drawable: DrawablePool) -> DrawablePool:
    """Return the pool with the disagreement of machine raters on each trace: the share of pairs of them that name
    different first errors, 0 with fewer than two."""
    found: dict[int, list[int | None]] = defaultdict(list)
    for part in paging.split(drawable.trace_ids.tolist(), _TRACES_PER_QUERY):
        rows = Assignment.objects.counted().filter(
            trace__in=part, purpose=AssignmentPurpose.WORK, rater__kind=RaterKind.MACHINE
        )
        for report in submitted_reports.load_revision_reports(list(rows.values_list("pk", "submitted_revision"))):
            found[report.trace_id].append(report.position)
    shares = [_count_differing_pairs(found.get(trace, [])) for trace in drawable.trace_ids.tolist()]
    return replace(drawable, pool=replace(drawable.pool, disagreement=np.array(shares, dtype=np.float64)))


def _count_differing_pairs(first_errors: Sequence[int | None]) -> float:
    n = len(first_errors)
    same = sum(k * (k - 1) for k in Counter(first_errors).values())
    return 1 - same / (n * (n - 1)) if n > 1 else 0.0


def make_pool_of_trace(prm: PRM, columns: Floats) -> Pool:
    """Return one scored trace as a pool of its own."""
    lengths, zero = np.array([len(columns)]), np.zeros(1, dtype=np.int64)
    p_wrong = hazards.calibrated_hazards(columns[:, 0], lengths, prm.semantics, prm.calibration)
    sizes = columns[:, 1].astype(np.int64), columns[:, 2].astype(np.int64)
    unknown = np.zeros(1, dtype=np.bool_)
    return Pool(lengths, p_wrong, *sizes, zero, zero, unknown, unknown)


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
    for part in paging.split(ids, _TRACES_PER_QUERY):
        encoded = dict(Score.objects.filter(prm=prm, trace__in=part).values_list("trace_id", "numbers"))
        rows = Trace.objects.filter(pk__in=encoded, problem__is_reserve=False, n_steps__gt=0).order_by("pk")
        for row in rows.values_list("pk", "problem_id", "problem__domain", "is_right"):
            yield _ScoredTrace(*row, bytes(encoded[row[0]]))


# --- reading pace -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadingPace:
    """`is_fitted` is false if too few submissions were timed and the rates are the defaults."""

    reading: ReadingRates
    n: int
    is_fitted: bool


def fit_reading_pace(manifest: Manifest, prm: PRM) -> ReadingPace:
    times = labeled_traces.load_reading_times(manifest)
    columns = scores.load_scores(prm, sorted({trace for trace, _, _ in times}))
    words = {trace: [0, *np.cumsum(steps[:, 1]).astype(int).tolist()] for trace, steps in columns.items()}
    rows = [
        (seconds, n_steps, words[trace][n_steps])
        for trace, n_steps, seconds in times
        if n_steps < len(words.get(trace, ()))
    ]
    if len(rows) < acquisitions.MIN_TIMED_READINGS:
        return ReadingPace(ReadingRates(), len(rows), False)
    seconds, steps_read, words_read = np.array(rows, dtype=np.float64).T
    rates = acquisitions.fit_reading_rates(
        seconds=seconds, steps_read=steps_read.astype(np.int64), words_read=words_read.astype(np.int64)
    )
    return ReadingPace(rates, len(rows), True)


# --- audit slice ------------------------------------------------------------------------------------------------------


def load_audit_slice(project_id: int) -> set[int]:
    drawn, uniform = _drawn_traces(project_id)
    ids = np.array(sorted(drawn | _next_undrawn_traces(project_id, drawn)), dtype=np.int64)
    positions = [uniform_walk_position(project_id, trace) for trace in ids.tolist()]
    is_in_slice = draws.mask_audit_slice(
        places=np.array(positions, dtype=np.float64),
        is_drawn=np.isin(ids, np.array(sorted(drawn), dtype=np.int64)),
        is_uniform=np.isin(ids, np.array(sorted(uniform), dtype=np.int64)),
    )
    return set(ids[is_in_slice].tolist())


def _drawn_traces(project_id: int) -> tuple[set[int], set[int]]:
    """Return the traces that were drawn or opened, and those of them that came from the uniform walk."""
    sources = dict(
        TraceDraw.objects.filter(project=project_id, **_IN_POOL).order_by("pk").values_list("trace_id", "arm")
    )
    opened = _work_assignments(project_id).filter(opened_at__isnull=False, population=Population.SCHEDULED)
    lanes = dict(opened.order_by("-pk").values_list("trace_id", "lane__arm"))
    by_trace = lanes | sources
    return set(by_trace), {trace for trace, source in by_trace.items() if source == SamplingSource.UNIFORM}


def _work_assignments(project_id: int) -> QuerySet[Assignment]:
    """Return the assignments on traces that are or were in a lane of the ordinary work."""
    entries = QueueEntry.objects.filter(
        trace=OuterRef("trace"), lane__arm__in=[SamplingSource.UNIFORM, SamplingSource.POLICY, SamplingSource.TOP_UP]
    )
    return Assignment.objects.filter(Exists(entries), project=project_id, purpose=AssignmentPurpose.WORK, **_IN_POOL)


def _next_undrawn_traces(project_id: int, drawn: set[int]) -> set[int]:
    """Return the first undrawn trace of the uniform lane, and those that left the lane without being opened."""
    first = next((trace for trace in _uniform_lane(project_id) if trace not in drawn), None)
    unopened = _work_assignments(project_id).filter(state=AssignmentState.HELD, opened_at=None)
    returned = QueueEntry.objects.open().filter(lane__project=project_id, lane__arm=SamplingSource.TOP_UP, **_IN_POOL)
    outside = {trace for rows in (unopened, returned) for trace in rows.values_list("trace_id", flat=True)} - drawn
    return outside if first is None else outside | {first}


def _uniform_lane(project_id: int) -> Iterator[int]:
    """Yield the traces that are left in the uniform lane, in its order."""
    lane = Lane.objects.filter(project=project_id, arm=SamplingSource.UNIFORM, generation=0).first()
    entries = QueueEntry.objects.open().filter(lane=lane, **_IN_POOL).order_by("-key", "-trace_id")
    while page := list(entries.values_list("key", "trace_id")[:_ENTRIES_PER_PAGE]):
        yield from (trace for _, trace in page)
        entries = entries.filter(key__lt=page[-1][0])
