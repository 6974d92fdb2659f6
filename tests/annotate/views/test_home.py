"""What a person is asked to look at again stands at home until they have."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling import judging
from people import members
from people.models import Role
from tests import factories
from tests.labeling.quality import scene

pytestmark = pytest.mark.django_db


def test_home_shows_what_is_asked_for_until_it_is_answered(client: Client) -> None:
    project, user = factories.make_project(), factories.make_user()
    members.join(project=project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
    assignment = scene.submit(project.raters.get(), factories.make_trace(project), [1, 1, 1])
    judging.ask_correction(
        assignment_id=assignment.pk, note="Is 7 × 8 <b>56</b>?", by=factories.make_user(), now=factories.NOW
    )
    client.force_login(user)
    page = client.get(reverse("annotate:home")).content.decode()
    assert "Is 7 × 8 &lt;b&gt;56&lt;/b&gt;?" in page
    assert f"?assignment={assignment.pk}" in page
    answer = client.post(reverse("annotate:leave_as_is", args=[assignment.pk]))
    assert answer.headers["Location"] == reverse("annotate:home")
    assert "7 × 8" not in client.get(reverse("annotate:home")).content.decode()
