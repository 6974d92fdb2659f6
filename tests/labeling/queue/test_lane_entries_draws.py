"""A drawn batch is served in the order of its draws, to one rater and to concurrent ones."""

import contextlib
import random
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from labeling import queue
from labeling.models import Assignment, Project, QueueEntry, Rater, TraceDraw
from labeling.queue import DrawnTrace
from tests import concurrency, factories

N = 24


def make_batch(*, overlap: int, uniform: int = 0, n: int = N) -> Project:
    """Draw all traces of the uniform lane, the last `uniform` ones by the uniform source. Ranks are in the reverse
    order of ids."""
    project = factories.make_project(
        overlap=overlap, overlap_limit=overlap, gold_share=0.0, reserve_share=0.0, open_limit=999
    )
    traces = [factories.make_trace(project, ["One."]).pk for _ in range(n)]
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=traces, slots=overlap, now=factories.NOW)
    assert queue.list_drawable_traces(project_id=project.pk) == sorted(traces)
    draws = [
        DrawnTrace(rank, trace, "uniform" if rank > n - uniform else "policy", 1 / (n - rank + 1), 1.0, n - rank + 1)
        for rank, trace in enumerate(reversed(traces), start=1)
    ]
    for start in range(0, n, 7):
        queue.save_draws(
            project_id=project.pk, batch=1, draws=draws[start : start + 7], prm="1 x", pool_size=n, now=factories.NOW
        )
    for rank in range(1, n + 1, 7):
        queue.enqueue_draws(
            project_id=project.pk, batch=1, ranks=(rank, rank + 7), generation=1, slots=overlap, now=factories.NOW
        )
    return project


def read_all(rater: Rater, chance: Callable[[], float], turn: AbstractContextManager[object] | None = None) -> None:
    while True:
        try:
            with turn or contextlib.nullcontext():
                queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=chance())
        except queue.NothingLeft:
            return


def ranks_of(rater: Rater) -> list[int]:
    """Return the ranks in the order of assignment."""
    handed = Assignment.objects.filter(rater=rater, draw__arm="policy").order_by("pk")
    return list(handed.values_list("draw__rank", flat=True))


@pytest.mark.django_db
def test_policy_lane_is_read_by_rank_and_each_assignment_points_to_its_draw() -> None:
    project = make_batch(overlap=1)
    rater = factories.make_rater(project)
    read_all(rater, lambda: 0.99)
    assert ranks_of(rater) == list(range(1, N + 1))
    for assignment in Assignment.objects.filter(rater=rater).select_related("draw"):
        assert assignment.draw is not None
        assert assignment.draw.trace_id == assignment.trace_id


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("real_connections")
@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.fault
def test_three_concurrent_raters_with_overlap_two_skip_no_trace(one_by_one: bool) -> None:
    """Each rater gets the traces in the order of their ranks, unless two claim at the same instant. Then neither waits:
    a rater who finds a trace locked gets the next one, and gets the locked one at the end."""
    project = make_batch(overlap=2)
    raters = [factories.make_rater(project) for _ in range(3)]
    turn = threading.Lock() if one_by_one else None
    concurrency.run_at_once(*[lambda rater=rater: read_all(rater, lambda: 0.99, turn) for rater in raters])
    for rater in raters if one_by_one else ():
        assert ranks_of(rater) == sorted(ranks_of(rater))
    assert sorted(rank for rater in raters for rank in ranks_of(rater)) == sorted([*range(1, N + 1)] * 2)
    assert not QueueEntry.objects.filter(lane__project=project, is_open=True).exists()


@pytest.mark.fault
@pytest.mark.django_db
def test_uniform_share_of_claims_is_within_its_binomial_interval() -> None:
    project = make_batch(overlap=1, uniform=90, n=290)
    rater, dice = factories.make_rater(project), random.Random(11)
    for _ in range(200):
        queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=dice.random())
    n = Assignment.objects.filter(rater=rater, draw__arm="uniform").count()
    assert 22 <= n <= 60  # 99.9 % of Binomial(200, .2)


@pytest.mark.django_db
def test_next_batch_takes_only_untouched_traces() -> None:
    project = make_batch(overlap=2, n=6)
    rater = factories.make_rater(project)
    begun = queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=0.99).trace_id
    left = queue.list_drawable_traces(project_id=project.pk)
    assert len(left) == 5
    assert begun not in left
    draws = [DrawnTrace(1, left[0], "policy", 0.5, 1.0, 5), DrawnTrace(2, left[1], "uniform", 0.5, 1.0, 4)]
    queue.save_draws(project_id=project.pk, batch=2, draws=draws, prm="2 x", pool_size=5, now=factories.NOW)
    queue.enqueue_draws(project_id=project.pk, batch=2, ranks=(1, 9), generation=2, slots=2, now=factories.NOW)
    queue.close_earlier_batches(project_id=project.pk, generation=2, by=None, now=factories.NOW)
    where = dict(QueueEntry.objects.filter(is_open=True).values_list("trace_id", "lane__arm"))
    assert (where[left[0]], where[left[1]], where[begun]) == ("policy", "uniform", "top_up")
    assert {where[trace] for trace in left[2:]} == {"uniform"}
    assert QueueEntry.objects.filter(trace__in=left[2:], lane__generation=0).count() == 3


@pytest.mark.django_db
def test_only_an_unserved_batch_is_deleted() -> None:
    project = make_batch(overlap=1, n=4)
    rater = factories.make_rater(project)
    queue.claim_trace(rater_id=rater.pk, now=factories.NOW, opened=True, chance=0.99)
    draw = DrawnTrace(1, queue.list_drawable_traces(project_id=project.pk)[0], "policy", 0.5, 1.0, 3)
    queue.save_draws(project_id=project.pk, batch=2, draws=[draw], prm="2 x", pool_size=3, now=factories.NOW)
    assert queue.next_batch_number(project_id=project.pk) == 3
    queue.delete_draws(project_id=project.pk, batch=2, now=factories.NOW)
    assert queue.next_batch_number(project_id=project.pk) == 2
    assert TraceDraw.objects.filter(project=project).count() == 4
