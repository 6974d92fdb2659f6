"""The draws of a batch: store them, and enqueue them once all are stored."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import F, Max

from accounts.models import User
from labeling.models import Lane, QueueEntry, TraceDraw
from labeling.models.queue import SamplingSource
from labeling.queue import lane_entries


class DrawnTrace(NamedTuple):
    """A drawn trace. `q` is its probability given the draws before it."""

    rank: int
    trace_id: int
    arm: str
    q: float
    score: float
    n_left: int


def next_batch_number(*, project_id: int) -> int:
    return int(TraceDraw.objects.filter(project=project_id).aggregate(last=Max("batch"))["last"] or 0) + 1


def list_drawable_traces(*, project_id: int) -> list[int]:
    """Return the work that no one has begun, in the order of ids: the pool that a batch is drawn from."""
    entries = QueueEntry.objects.open().filter(
        lane__project=project_id,
        lane__arm__in=[SamplingSource.UNIFORM, SamplingSource.POLICY],
        lane__closed_at=None,
        slots_left=F("slots"),
        trace__withdrawn_at=None,
    )
    return list(entries.order_by("trace_id").values_list("trace_id", flat=True))


def save_draws(
    *, project_id: int, batch: int, draws: Sequence[DrawnTrace], prm: str, pool_size: int, now: dt.datetime
) -> None:
    """Store a part of a batch. Draws that are already stored do not change."""
    TraceDraw.objects.bulk_create(
        (
            TraceDraw(
                project_id=project_id,
                batch=batch,
                rank=each.rank,
                trace_id=each.trace_id,
                arm=each.arm,
                q=min(each.q, 1.0),  # rounding can raise a sum above 1
                score=each.score,
                prm=prm,
                pool_size=pool_size,
                n_left=each.n_left,
                drawn_at=now,
            )
            for each in draws
        ),
        ignore_conflicts=True,
    )


def delete_draws(*, project_id: int, batch: int, now: dt.datetime) -> None:
    """Delete an incomplete batch that was never served, so that it can be drawn again."""
    TraceDraw.objects.filter(project=project_id, batch=batch, drawn_at__lte=now, assignments=None).delete()


def enqueue_draws(
    *, project_id: int, batch: int, ranks: tuple[int, int], generation: int, slots: int, now: dt.datetime
) -> int:
    """Add the draws with ranks in a half-open range to their lanes, in the order of ranks."""
    draws = list(TraceDraw.objects.filter(project=project_id, batch=batch, rank__gte=ranks[0], rank__lt=ranks[1]))
    added = 0
    for arm in (SamplingSource.POLICY, SamplingSource.UNIFORM):
        mine = {draw.trace_id: draw for draw in draws if draw.arm == arm}
        added += lane_entries.enqueue(
            project_id=project_id,
            arm=arm,
            trace_ids=sorted(mine, key=lambda trace: mine[trace].rank),
            slots=slots,
            now=now,
            generation=generation,
            draws={trace: draw.pk for trace, draw in mine.items()},
            keys={trace: -draw.rank for trace, draw in mine.items()},
        )
    return added


def close_earlier_batches(*, project_id: int, generation: int, by: User | None, now: dt.datetime) -> None:
    """Close the lanes of earlier batches. Traces that no one has begun can be drawn again."""
    lanes = Lane.objects.filter(
        project=project_id,
        arm__in=[SamplingSource.POLICY, SamplingSource.UNIFORM],
        generation__gt=0,
        generation__lt=generation,
    )
    for pk in lanes.open().order_by("pk").values_list("pk", flat=True):
        lane_entries.close_lane(lane_id=pk, now=now, by=by)
