"""Agreement as leads read it: every share alike, and why there is none."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Fit
from labeling.models.fit import FitBasis
from labeling.quality import figures
from tests import factories
from tests.labeling.quality import scene
from tests.people.cast import make_cast

pytestmark = pytest.mark.django_db


def test_page_says_shares_alike_and_why_nothing_is_held_against_consensus(client: Client) -> None:
    cast = make_cast()
    client.force_login(cast.lead)
    trace = factories.make_trace(cast.project)
    for rater in scene.raters(cast.project, 2):
        scene.submit(rater, trace, [1, -1])
    figures.compute(project_id=cast.project.pk, now=factories.NOW)  # nothing is settled yet
    known = {"gap_before": 0.156, "gap_after": 0.09, "threshold": 0.94, "lower_bound": 0.9}
    Fit.objects.create(
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
