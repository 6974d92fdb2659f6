"""The pool's error share, estimated from the labels of a batch."""

import pytest

from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import TraceDraw
from prm import pool_estimates, trace_labels
from tests import factories
from tests.prm import generation_project

pytestmark = pytest.mark.django_db


def test_estimate_uses_the_draws_before_the_first_unlabeled_one() -> None:
    project = generation_project.make_project(labelled=40, unread=3)
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="t", now=factories.NOW, by=None
    )
    shares = trace_labels.load_error_shares(frozen)
    labeled, unlabeled = sorted(shares)[:25], project.traces.exclude(pk__in=shares).values_list("pk", flat=True)[0]
    for rank, trace in enumerate([*labeled, unlabeled, sorted(shares)[25]], start=1):
        numbers = {"batch": 1, "rank": rank, "q": 1 / (44 - rank), "pool_size": 43, "n_left": 44 - rank}
        TraceDraw.objects.create(project=project, trace_id=trace, arm="uniform", drawn_at=factories.NOW, **numbers)
    estimate = pool_estimates.estimate_from_batch(project_id=project.pk, batch=1, manifest=frozen)
    losses = [shares[trace] for trace in labeled]
    assert (estimate["n"], estimate["n_drawn"]) == (25, 27)
    assert estimate["plain"] == pytest.approx(sum(losses) / 25)  # all draws were equally likely
    assert set(estimate["domains"]) == {"sums", "totals"}
    TraceDraw.objects.filter(rank=3).update(trace_id=project.traces.exclude(pk__in=[*shares, unlabeled])[0].pk)
    assert "plain" not in pool_estimates.estimate_from_batch(project_id=project.pk, batch=1, manifest=frozen)
