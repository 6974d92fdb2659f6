"""What is known of a trace before anybody rates it. Alone makes gold, corrects it and takes it out of use."""

import datetime as dt
from collections.abc import Mapping, Sequence

from django.db import transaction

from accounts.models import User
from events import log
from labeling.models import Gold, GoldRating, Option, Trace
from labeling.models.quality import GoldUse


class NotKnowable(Exception):
    """What is said of the trace cannot be true of it: an error at a step that it does not have, or nothing at all."""


def make_gold(
    *,
    trace: Trace,
    use: GoldUse,
    accepted_first_errors: Sequence[int | None],
    by: User | None,
    now: dt.datetime,
    explanation: str = "",
    ratings: Mapping[int, int] | None = None,
) -> Gold:
    """Say where the first error of a trace may be seen: positions of steps, None for "there is no error".

    `ratings` are by option, where more is known than the first error. The trace is served as gold once it is put into
    a gold or screening lane: `queue.enqueue`.
    """
    _refuse_impossible(trace, accepted_first_errors, ratings or {})
    with transaction.atomic():
        gold = Gold.objects.create(
            trace=trace,
            use=use,
            accepted_first_errors=list(accepted_first_errors),
            explanation=explanation,
            made_by=by,
            made_at=now,
        )
        GoldRating.objects.bulk_create(
            GoldRating(gold=gold, option_id=option, rating=rating) for option, rating in (ratings or {}).items()
        )
        log.append(what="gold.made", by=by, now=now, project=trace.project_id, subject=f"trace:{trace.pk}")
    return gold


def forget(*, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Delete what was known of traces that nobody has opened, before the traces themselves go."""
    n_deleted, _ = Gold.objects.filter(trace_id__in=trace_ids, made_at__lte=now).delete()
    return n_deleted


def _refuse_impossible(trace: Trace, first_errors: Sequence[int | None], ratings: Mapping[int, int]) -> None:
    if not first_errors:
        raise NotKnowable("Name at least one accepted first error; None says that there is no error.")
    rateable = set(trace.steps.filter(is_rateable=True).values_list("position", flat=True))
    outside = sorted({position for position in first_errors if position is not None} - rateable)
    if outside:
        raise NotKnowable(f"No rateable step stands at {outside}. Positions count from 0.")
    if Option.objects.filter(pk__in=ratings, step__trace=trace).count() != len(ratings):
        raise NotKnowable("A rating belongs to an option of another trace.")
