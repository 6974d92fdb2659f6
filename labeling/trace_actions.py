"""Actions on many traces at once. A trace to which an action does not apply is not changed, and is counted by
reason."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from labeling.models import Gold, Trace
from labeling.models.gold import GoldUse
from labeling.quality.adjudication import CannotDecide, send_back_trace
from labeling.quality.gold import InvalidGold, enqueue_gold, move_gold, promote_to_gold


class ActionOutcome(NamedTuple):
    n_done: int
    refused: Counter[str]  # by the message for people


def request_labels(*, traces: Iterable[Trace], by: User | None, now: dt.datetime) -> ActionOutcome:
    """Request one more label for each trace, also for settled and decided ones."""
    return _for_each(traces, lambda trace: send_back_trace(trace_id=trace.pk, by=by, now=now))


def requeue_traces(*, traces: Iterable[Trace], by: User | None, now: dt.datetime) -> ActionOutcome:
    """Discard the consensus of each trace, and request as many new labels as a new trace gets. Earlier labels still
    count; set them aside if they should not."""
    return _for_each(traces, lambda trace: send_back_trace(trace_id=trace.pk, n=trace.project.overlap, by=by, now=now))


def make_gold_of_consensus(*, traces: Iterable[Trace], use: GoldUse, by: User, now: dt.datetime) -> ActionOutcome:
    """Make gold from the consensus of each trace, and serve it."""

    def make(trace: Trace) -> None:
        promote_to_gold(trace=trace, use=use, by=by, now=now)
        enqueue_gold(project_id=trace.project_id, use=use, trace_ids=[trace.pk], now=now)

    return _for_each(traces, make)


def change_gold_use(*, traces: Iterable[Trace], use: GoldUse, by: User, now: dt.datetime) -> ActionOutcome:
    """Move each trace's gold to another use, and serve it there."""

    def change(trace: Trace) -> None:
        gold = Gold.objects.active().filter(trace=trace).exclude(use=use).select_related("trace").first()
        if gold is None:
            raise InvalidGold(_("The trace is not gold, or is already gold for this use."), "no_gold")
        move_gold(gold=gold, use=use, by=by, now=now)
        enqueue_gold(project_id=trace.project_id, use=use, trace_ids=[trace.pk], now=now)

    return _for_each(traces, change)


def _for_each(traces: Iterable[Trace], change: Callable[[Trace], None]) -> ActionOutcome:
    """Change each trace in its own transaction, so that no lock lasts long."""
    n_done, refused = 0, Counter[str]()
    for trace in traces:
        try:
            with transaction.atomic():
                change(trace)
        except (InvalidGold, CannotDecide) as error:
            refused[str(error)] += 1
        else:
            n_done += 1
    return ActionOutcome(n_done, refused)
