"""Shared fixtures of the leads' pages."""

import pytest
from django.test import Client

from tests.people.personas import LoggedInPersonas, Personas


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    """A project with a person of each role, logged in as its lead."""
    cast = personas.cast
    client.force_login(cast.lead)
    return cast
