"""Steps of a trace, changed by API."""

from typing import Any

import pytest
from django.urls import reverse

from labeling.models import Trace
from labeling.traces.changed_steps import load_step_records
from tests import factories
from tests.api import api_clients
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


@pytest.mark.fault
def test_changes_make_a_new_trace(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    trace = factories.make_trace(cast.project, steps=["One. And.", "Two.", "Three."])
    client = api_clients.make_client(cast.engineer)
    address = reverse("api:trace_steps", args=[cast.project.slug, trace.pk])

    def post(*changes: dict[str, Any], **more: Any) -> Any:
        return client.post(address, {"changes": list(changes), **more}, content_type="application/json")

    assert post().status_code == 422
    assert post({"position": 0, "cuts": [0]}).status_code == 422
    assert post({"position": 0, "merges": True}).status_code == 422
    assert post({"position": 2, "merges": True}, other=1).status_code == 422
    assert Trace.objects.get() == trace
    response = post({"position": 0, "cuts": [4]}, {"position": 2, "merges": True})
    assert response.status_code == 201
    new = Trace.objects.available().get()
    assert response.json() == {"trace": new.pk, "n_steps": 3}
    assert [step.options[0].text for step in load_step_records(new)] == ["One.", "And.", "Two.\nThree."]
    assert post({"position": 2, "merges": True}).status_code == 422  # withdrawn
