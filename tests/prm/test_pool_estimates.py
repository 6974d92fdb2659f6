"""What draws tell of their pool, read from the rows."""

import pytest

from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import TraceDraw
from prm import pool_estimates, trace_labels
from tests import factories
from tests.prm import generation_project

pytestmark = pytest.mark.django_db


def test_of_batch_weighs_what_was_read_down_to_the_first_gap() -> None:
    project = generation_project.make_project(labelled=40, unread=3)
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="t", now=factories.NOW, by=None
    )
    shares = trace_labels.load_error_shares(frozen)
    read, unread = sorted(shares)[:25], project.traces.exclude(pk__in=shares).values_list("pk", flat=True)[0]
    for rank, trace in enumerate([*read, unread, sorted(shares)[25]], start=1):
        told = {"batch": 1, "rank": rank, "q": 1 / (44 - rank), "pool_size": 43, "n_left": 44 - rank}
        TraceDraw.objects.create(project=project, trace_id=trace, arm="uniform", drawn_at=factories.NOW, **told)
    found = pool_estimates.estimate_from_batch(project_id=project.pk, batch=1, manifest=frozen)
    losses = [shares[trace] for trace in read]
    assert (found["n"], found["n_drawn"]) == (25, 27)
    assert found["plain"] == pytest.approx(sum(losses) / 25)  # all were equally likely
    assert set(found["domains"]) == {"sums", "totals"}
    TraceDraw.objects.filter(rank=3).update(trace_id=project.traces.exclude(pk__in=[*shares, unread])[0].pk)
    assert "plain" not in pool_estimates.estimate_from_batch(project_id=project.pk, batch=1, manifest=frozen)
