"""The headline of a project in which a policy chooses rests on the walk of the uniform lane."""

import random

import numpy as np
import pytest

from labeling import queue
from labeling.models import Assignment, Project, Trace, TraceDraw
from labeling.quality import project_stats, tally_arrays
from prm import audit_slice, drawable_pool
from prm.selection import uniform_sample
from tests import call_counter, factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def project() -> Project:
    project = factories.make_project()
    traces = [factories.make_trace(project).pk for _ in range(8)]
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=traces, slots=2, now=NOW)
    return project


def walk(project: Project) -> list[int]:
    """The traces in the order of the uniform lane."""
    ids = Trace.objects.filter(project=project).values_list("pk", flat=True)
    return sorted(ids, key=lambda pk: drawable_pool.uniform_walk_position(project.pk, pk))


def read_twice(project: Project, trace_id: int) -> None:
    for rater in submitted_work.make_raters(project, 2):
        submitted_work.submit_trace(rater, Trace.objects.get(pk=trace_id), [1, -1])


def draw(project: Project, trace_id: int, arm: str, rank: int) -> None:
    numbers = {"batch": 1, "q": 0.5, "pool_size": 8, "n_left": 8, "drawn_at": NOW}
    TraceDraw.objects.create(project=project, trace_id=trace_id, arm=arm, rank=rank, **numbers)


def test_of_id_is_what_the_headline_reads(project: Project) -> None:
    order = walk(project)
    for rank, (place, arm) in enumerate(((0, "uniform"), (1, "policy"), (2, "uniform"), (6, "policy"))):
        draw(project, order[place], arm, rank)
        read_twice(project, order[place])
    assert audit_slice.load_audit_slice_by_id in tally_arrays._audit_slices
    assert audit_slice.load_audit_slice_by_id(project.pk) == {
        order[0],
        order[1],
    }  # before the furthest draw of the uniform arm
    found = project_stats.build_stats_content(project_id=project.pk, now=NOW)
    assert (found["headline"]["is_audit_slice"], found["headline"]["n_traces"]) == (True, 2)
    assert sum(row["n_traces"] for row in found["generation"]) == 4


def by_the_whole_pool(project: Project) -> set[int]:
    """The definition, read off every trace that stands in a lane of the work."""
    traces = project.traces.filter(withdrawn_at=None, problem__is_reserve=False, queue_entries__isnull=False).distinct()
    draws = dict(project.draws.order_by("pk").values_list("trace_id", "arm"))
    begun = Assignment.objects.filter(project=project, opened_at__isnull=False).order_by("-pk")
    lanes = dict(begun.values_list("trace_id", "lane__arm"))
    ids = np.array(sorted(traces.values_list("pk", flat=True)))
    found = uniform_sample.mask_audit_slice(
        places=np.array([drawable_pool.uniform_walk_position(project.pk, trace) for trace in ids.tolist()]),
        is_drawn=np.array([trace in draws or trace in lanes for trace in ids.tolist()]),
        is_uniform=np.array([draws.get(trace, lanes.get(trace)) == "uniform" for trace in ids.tolist()]),
    )
    return set(ids[found].tolist())


@pytest.mark.parametrize("seed", range(6))
def test_slice_is_that_of_the_whole_pool_however_the_work_goes(project: Project, seed: int) -> None:
    """Draws, claims, readings, withdrawals in any order; some are held, some came back."""
    dice, now = random.Random(seed), NOW
    raters = submitted_work.make_raters(project, 3)
    for rank, place in enumerate(dice.sample(range(8), dice.randint(0, 3))):
        draw(project, walk(project)[place], dice.choice(["uniform", "policy"]), rank)
    for _ in range(dice.randint(2, 6)):
        rater = dice.choice(raters)
        queue.claim_trace(rater_id=rater.pk, now=now, opened=dice.random() < 0.7)
        if dice.random() < 0.3:
            held = Assignment.objects.filter(rater=rater, opened_at=None, state="held")
            for assignment in held:
                queue.release_assignment(assignment_id=assignment.pk, now=now, reason="", by=None)
    if dice.random() < 0.5:
        queue.withdraw_traces(trace_ids=[dice.choice(walk(project))], now=now, reason="", by=None)
    assert audit_slice.load_audit_slice(project) == by_the_whole_pool(project)


def test_slice_reads_what_was_drawn_and_no_more(project: Project) -> None:
    order = walk(project)
    draw(project, order[0], "uniform", 1)
    draw(project, order[5], "policy", 2)
    n_hashed = call_counter.count_calls(
        drawable_pool.uniform_walk_position, lambda: audit_slice.load_audit_slice(project)
    )
    assert n_hashed == 3  # both, and the next of the walk
