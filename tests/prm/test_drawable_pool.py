"""The pool: the audit slice, from which headline figures come, and reading rates fitted to the time of submissions."""

import random
from dataclasses import asdict

import numpy as np
import pytest

from labeling import queue
from labeling.models import Assignment, Project, Trace, TraceDraw
from labeling.quality import project_stats, tallies
from labeling.traces import load
from prm import drawable_pool
from prm.selection import draws
from prm.selection.acquisitions import ReadingRates
from tests import call_counter, factories
from tests.labeling.quality import submitted_work
from tests.prm import generation_project

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def project() -> Project:
    project = factories.make_project()
    traces = [factories.make_trace(project).pk for _ in range(8)]
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=traces, slots=2, now=NOW)
    return project


def list_walk(project: Project) -> list[int]:
    """Return the traces in the order of the uniform walk."""
    ids = Trace.objects.filter(project=project).values_list("pk", flat=True)
    return sorted(ids, key=lambda pk: drawable_pool.uniform_walk_position(project.pk, pk))


def label_twice(project: Project, trace_id: int) -> None:
    for rater in submitted_work.make_raters(project, 2):
        submitted_work.submit_trace(rater, Trace.objects.get(pk=trace_id), [1, -1])


def save_draw(project: Project, trace_id: int, arm: str, rank: int) -> None:
    numbers = {"batch": 1, "q": 0.5, "pool_size": 8, "n_left": 8, "drawn_at": NOW}
    TraceDraw.objects.create(project=project, trace_id=trace_id, arm=arm, rank=rank, **numbers)


def test_headline_figures_use_the_slice(project: Project) -> None:
    order = list_walk(project)
    for rank, (place, arm) in enumerate(((0, "uniform"), (1, "policy"), (2, "uniform"), (6, "policy"))):
        save_draw(project, order[place], arm, rank)
        label_twice(project, order[place])
    assert drawable_pool.load_audit_slice in tallies._audit_slices
    before_furthest_uniform_draw = {order[0], order[1]}
    assert drawable_pool.load_audit_slice(project.pk) == before_furthest_uniform_draw
    stats = project_stats.build_stats_content(project_id=project.pk, now=NOW)
    assert stats["headline"]["is_audit_slice"]
    assert stats["headline"]["n_traces"] == 2
    assert sum(row["n_traces"] for row in stats["generation"]) == 4


def compute_from_whole_pool(project: Project) -> set[int]:
    """Apply the definition to every trace of the ordinary work."""
    traces = project.traces.filter(withdrawn_at=None, problem__is_reserve=False, queue_entries__isnull=False).distinct()
    sources = dict(project.draws.order_by("pk").values_list("trace_id", "arm"))
    opened = Assignment.objects.filter(project=project, opened_at__isnull=False).order_by("-pk")
    lanes = dict(opened.values_list("trace_id", "lane__arm"))
    ids = np.array(sorted(traces.values_list("pk", flat=True)))
    is_in_slice = draws.mask_audit_slice(
        places=np.array([drawable_pool.uniform_walk_position(project.pk, trace) for trace in ids.tolist()]),
        is_drawn=np.array([trace in sources or trace in lanes for trace in ids.tolist()]),
        is_uniform=np.array([sources.get(trace, lanes.get(trace)) == "uniform" for trace in ids.tolist()]),
    )
    return set(ids[is_in_slice].tolist())


@pytest.mark.parametrize("seed", range(6))
def test_slice_equals_the_definition_on_the_whole_pool(project: Project, seed: int) -> None:
    """Draws, claims, returns and withdrawals in random order; some assignments stay open."""
    dice, now = random.Random(seed), NOW
    raters = submitted_work.make_raters(project, 3)
    for rank, place in enumerate(dice.sample(range(8), dice.randint(0, 3))):
        save_draw(project, list_walk(project)[place], dice.choice(["uniform", "policy"]), rank)
    for _ in range(dice.randint(2, 6)):
        rater = dice.choice(raters)
        queue.claim_trace(rater_id=rater.pk, now=now, opened=dice.random() < 0.7)
        if dice.random() < 0.3:
            unopened = Assignment.objects.filter(rater=rater, opened_at=None, state="held")
            for assignment in unopened:
                queue.release_assignment(assignment_id=assignment.pk, now=now, reason="", by=None)
    if dice.random() < 0.5:
        queue.withdraw_traces(trace_ids=[dice.choice(list_walk(project))], now=now, reason="", by=None)
    assert drawable_pool.load_audit_slice(project.pk) == compute_from_whole_pool(project)


def test_slice_reads_only_drawn_traces_and_the_next_one(project: Project) -> None:
    order = list_walk(project)
    save_draw(project, order[0], "uniform", 1)
    save_draw(project, order[5], "policy", 2)
    n_hashed = call_counter.count_calls(
        drawable_pool.uniform_walk_position, lambda: drawable_pool.load_audit_slice(project.pk)
    )
    assert n_hashed == 3  # the two draws, and the next trace on the walk


WORDS = 8  # per step


def make_timed_project(n: int) -> Project:
    """Make submissions that took 20 s plus 7 s per step."""
    project = generation_project.make_project(labeled=0, unread=10)
    records = [generation_project.make_record(number, is_labeled=True, seed=1) for number in range(n)]
    for record in records:
        record.submissions[0].total_ms = 20_000 + 7_000 * len(record.submissions[0].turns)
    source = load.ensure_source(project=project, name="timed", format="generated", now=factories.NOW)
    load.load_records(project=project, source=source, records=records, now=factories.NOW)
    return project


@pytest.mark.fault
def test_generation_uses_fitted_rates() -> None:
    rates = generation_project.run_generation(make_timed_project(120)).reading
    assert (rates["is_fitted"], rates["n"]) == (True, 120)
    assert rates["opening"] == pytest.approx(20, abs=0.1)
    assert rates["step"] + WORDS * rates["word"] == pytest.approx(7, abs=0.1)


@pytest.mark.fault
def test_few_timed_submissions_leave_the_default_rates() -> None:
    generation = generation_project.run_generation(make_timed_project(60))
    assert generation.candidate is not None
    assert generation.manifest is not None
    pace = drawable_pool.fit_reading_pace(generation.manifest, generation.candidate)
    assert (pace.reading, pace.n, pace.is_fitted) == (ReadingRates(), 60, False)
    assert generation.reading == {**asdict(pace.reading), "n": 60, "is_fitted": False}
