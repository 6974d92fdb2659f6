"""The page of one submission, and the request for a correction."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import CorrectionRequest, Rater
from tests.dashboard.labeled_project import label_traces
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


@pytest.mark.fault
def test_submission_shows_other_ratings_and_takes_one_correction_request(
    client: Client, personas: LoggedInPersonas
) -> None:
    cast = personas.cast
    client.force_login(cast.lead)
    label_traces(cast, 1)
    rater = Rater.objects.filter(project=cast.project).exclude(user=cast.annotator).earliest("pk")
    assignment = rater.assignments.get()
    address = reverse("dashboard:submission", args=[cast.project.slug, assignment.pk])
    steps = client.get(address).context["page"]["steps"]
    assert [step.opinion.rating for step in steps] == [1, -1]
    assert [[opinion.rating for _rater, opinion in step.others] for step in steps] == [[-1], []]
    request = reverse("dashboard:create_correction_request", args=[cast.project.slug, assignment.pk])
    assert client.post(request, {"note": ""}).status_code == 422
    assert client.post(request, {"note": "Look at step 2."}).status_code == 302
    assert client.post(request, {"note": "Again."}).status_code == 422
    assert CorrectionRequest.objects.get(assignment=assignment).note == "Look at step 2."
    assert 'data-correction="open"' in client.get(address).content.decode()
    assert client.get(address + "?revision=9").status_code == 404
