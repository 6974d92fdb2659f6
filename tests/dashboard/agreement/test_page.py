"""Agreement as leads read it: every share alike, and why there is none."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import RaterModelFit
from labeling.models.rater_model import FitBasis
from labeling.quality import project_stats
from tests import factories
from tests.labeling.quality import submitted_work
from tests.people.personas import make_personas

pytestmark = pytest.mark.django_db


def test_page_says_shares_alike_and_why_nothing_is_held_against_consensus(client: Client) -> None:
    cast = make_personas()
    client.force_login(cast.lead)
    trace = factories.make_trace(cast.project)
    for rater in submitted_work.make_raters(cast.project, 2):
        submitted_work.submit_trace(rater, trace, [1, -1])
    project_stats.compute_project_stats(project_id=cast.project.pk, now=factories.NOW)  # nothing is settled yet
    known = {"gap_before": 0.156, "gap_after": 0.09, "threshold": 0.94, "lower_bound": 0.9}
    RaterModelFit.objects.create(
        project=cast.project,
        basis=FitBasis.BLIND,
        number=1,
        made_at=factories.NOW,
        n_traces=1,
        n_readings=2,
        n_gold=100,
        n_accepted=60,
        rates={},
        hazards={},
        **known,
    )
    told = client.get(reverse("dashboard:agreement", args=[cast.project.slug])).content.decode()
    assert "No trace is settled yet, so nothing can be held against it." in told
    assert ".16 as learned, .09 as told" in told
    assert ".94: 60 gold traces reached it, at least .90 of them right" in told
    assert "0.16" not in told
