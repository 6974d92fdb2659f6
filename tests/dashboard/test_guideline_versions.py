"""A lead learns that a change has published the next version of the guideline."""

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from labeling.models import Project
from labeling.projects import lifecycle
from tests import factories
from tests.dashboard.views.test_rating_rules import DATA
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("asks", "levels"), [(True, ["success", "info"]), (False, ["success"])])
def test_message_is_there_if_annotators_are_asked_something_else(
    client: Client, personas: LoggedInPersonas, asks: bool, levels: list[str]
) -> None:
    cast = personas.cast
    Project.objects.filter(pk=cast.project.pk).update(asks_error_category=asks)
    project = Project.objects.get(pk=cast.project.pk)
    lifecycle.publish_guideline(project=project, body="Rate.", by=None, now=factories.NOW)
    client.force_login(cast.lead)
    saved = client.post(reverse("dashboard:rating_rules", args=[project.slug]), DATA)
    assert [message.level_tag for message in get_messages(saved.wsgi_request)] == levels
    assert project.guidelines.count() == len(levels)
