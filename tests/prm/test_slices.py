"""The headline of a project in which a policy chooses rests on the walk of the uniform lane."""

import pytest

from labeling import queue
from labeling.models import Draw, Project, Trace
from labeling.quality import figures, populations
from prm import pools, slices
from tests import factories
from tests.labeling.quality import scene

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
    return sorted(ids, key=lambda pk: pools.place(project.pk, pk))


def read_twice(project: Project, trace_id: int) -> None:
    for rater in scene.raters(project, 2):
        scene.submit(rater, Trace.objects.get(pk=trace_id), [1, -1])


def draw(project: Project, trace_id: int, arm: str, rank: int) -> None:
    numbers = {"batch": 1, "q": 0.5, "pool_size": 8, "n_left": 8, "drawn_at": NOW}
    Draw.objects.create(project=project, trace_id=trace_id, arm=arm, rank=rank, **numbers)


def test_of_id_is_what_the_headline_reads(project: Project) -> None:
    order = walk(project)
    for rank, (place, arm) in enumerate(((0, "uniform"), (1, "policy"), (2, "uniform"), (6, "policy"))):
        draw(project, order[place], arm, rank)
        read_twice(project, order[place])
    assert slices.of_id in populations._slices
    assert slices.of_id(project.pk) == {order[0], order[1]}  # before the furthest draw of the uniform arm
    found = figures.of_project(project_id=project.pk, now=NOW)
    assert (found["headline"]["is_audit_slice"], found["headline"]["n_traces"]) == (True, 2)
    assert sum(row["n_traces"] for row in found["generation"]) == 4
