"""Shared fixtures of the leads' pages."""

import pytest
from django.test import Client

from tests.people.personas import Personas, make_personas


@pytest.fixture
def cast(client: Client) -> Personas:
    """A project with a person of each role, logged in as its lead."""
    cast = make_personas()
    client.force_login(cast.lead)
    return cast
