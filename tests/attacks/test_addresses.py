"""Users cannot make the platform call internal addresses, and never read what such an address answers."""

from typing import Any

import pytest
from django.urls import reverse

from prm.models import PRM
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db

INTERNAL = [
    "http://127.0.0.1:9199/secret",
    "http://localhost:6379/",
    "http://10.0.0.1/",
    "http://[::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://0.0.0.0/",
]


@pytest.fixture(autouse=True)
def _nothing_is_allowed(settings: Any) -> None:
    settings.OUTBOUND_HOSTS = []


@pytest.mark.parametrize("address", INTERNAL)
def test_scorer_and_webhook_at_an_internal_address_are_refused(address: str, personas: LoggedInPersonas) -> None:
    slug, client = personas.cast.project.slug, personas.client("owner")
    scorer = {"backend": "http", "model": "m", "digest": "d", "address": address, "semantics": "hazard"}
    response = client.post(reverse("dashboard:register_prm", args=[slug]), scorer)
    assert response.status_code == 422
    assert not PRM.objects.exists()
    hook = {"address": address, "kinds": "import.done"}
    assert client.post(reverse("dashboard:create_webhook", args=[slug]), hook).status_code == 422
