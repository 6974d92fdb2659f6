"""The acquisition "disagreement": traces on which machine raters differ come first, with known probabilities."""

import numpy as np
import pytest

from labeling.models import TraceDraw
from prm import drawable_pool, generations
from prm.drawable_pool import DrawablePool
from prm.selection import acquisitions
from prm.selection.acquisitions import ReadingRates
from tests import factories
from tests.machines import machine_labels
from tests.prm import generation_project
from tests.prm.selection.pools import make_pool

pytestmark = pytest.mark.django_db


def test_disagreement_is_the_share_of_differing_pairs() -> None:
    project = factories.make_project()
    machines = [factories.make_machine_rater(project, f"judge: {name}") for name in "abc"]
    traces = [factories.make_trace(project) for _ in range(4)]
    named: list[list[int | None]] = [[1, None, 0], [1, 2, None], [1, 1]]
    for machine, first_errors in zip(machines, named, strict=True):
        machine_labels.label_by_machine(machine, dict(zip(traces, first_errors, strict=False)))
    person = factories.make_rater(project)
    machine_labels.label_by_person(person, traces[0], None)
    ids = np.array([trace.pk for trace in traces])
    drawable = drawable_pool.add_disagreement(DrawablePool(ids, make_pool(n=4), np.arange(4.0)))
    assert drawable.pool.disagreement is not None
    assert drawable.pool.disagreement.tolist() == [0.0, 1.0, 1.0, 0.0]
    scores = acquisitions.acquisition_scores("disagreement", drawable.pool, ReadingRates())
    assert scores.tolist() == [1e-9, 1.0, 1.0, 1e-9]


@pytest.mark.fault
def test_batch_prefers_traces_on_which_machines_disagree() -> None:
    project = generation_project.make_project(labeled=80, unread=60)
    generations.change_loop_rules(
        project=project, by=None, now=factories.NOW, acquisition="disagreement", batch_size=20
    )
    machines = [factories.make_machine_rater(project, f"judge: {name}") for name in "ab"]
    unread = list(project.traces.filter(queue_entries__isnull=False).order_by("pk"))
    differing = unread[::3]
    for number, machine in enumerate(machines):
        labels = {trace: 0 if trace in differing and number else None for trace in unread}
        machine_labels.label_by_machine(machine, labels)
    generation = generation_project.run_generation(project, factories.NOW)
    assert generation.acquisition == "disagreement"
    assert generation.batch is not None
    policy = TraceDraw.objects.filter(project=project, batch=generation.batch, arm="policy")
    assert policy.count() > 5
    # Quotas of domains and problems leave room for a few others.
    assert policy.filter(trace__in=differing).count() >= 0.7 * policy.count()
    assert all(0 < q <= 1 for q in policy.values_list("q", flat=True))
