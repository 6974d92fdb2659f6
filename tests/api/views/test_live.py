"""Live labeling in the API."""

import pytest
from django.urls import reverse

from labeling.models import Project
from live.models import LivePolicy
from tests.api import api_clients
from tests.live import live_project
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


def test_program_reads_policies_and_figures(personas: LoggedInPersonas) -> None:
    Project.objects.filter(pk=personas.cast.project.pk).update(protocol="live")
    policy = live_project.make_policy(Project.objects.get(pk=personas.cast.project.pk), key="k-1234")
    program = api_clients.make_client(personas.cast.engineer, "read")
    response = program.get(reverse("api:live_labeling", args=[policy.project.slug]))
    assert b"k-1234" not in response.content
    (listed,) = response.json()["policies"]
    assert (listed["version"], listed["template_digest"]) == (1, LivePolicy.objects.get().template_digest)
    assert response.json()["figures"]["n_ended"] == 0
