"""Leads write, people read and answer, leads see the thread: all of it by plain forms."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from labeling.models import Rater
from people import members, messaging
from people.models import Message, Role
from tests import factories
from tests.people.cast import Cast, make_cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client) -> Cast:
    cast = make_cast()
    client.force_login(cast.lead)
    return cast


def test_message_goes_to_one_person_and_its_answer_comes_back(client: Client, cast: Cast) -> None:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    of_thread = [cast.project.slug, rater.pk]
    client.post(reverse("dashboard:write_message", args=of_thread), {"text": "Is <b>7</b> prime?"})
    client.force_login(cast.annotator)
    for place in (reverse("annotate:home"), reverse("annotate:unread", args=[cast.project.slug])):
        assert "Is &lt;b&gt;7&lt;/b&gt; prime?" in client.get(place).content.decode()
    client.post(reverse("annotate:answer_message", args=[Message.objects.get().pk]), {"answer": "It is."})
    assert "prime" not in client.get(reverse("annotate:home")).content.decode()
    assert "It is." in client.get(reverse("annotate:messages")).content.decode()
    client.force_login(cast.lead)
    waiting = client.get(reverse("dashboard:overview", args=[cast.project.slug])).content.decode()
    assert "New answer" in waiting
    for place in ("annotators", "messages"):
        assert "new answer" in client.get(reverse(f"dashboard:{place}", args=[cast.project.slug])).content.decode()
    assert "It is." in client.get(reverse("dashboard:thread", args=of_thread)).content.decode()
    client.post(reverse("dashboard:see_answers", args=of_thread))
    assert "new answer" not in client.get(reverse("dashboard:annotators", args=of_thread[:1])).content.decode()


def test_message_to_all_says_how_many_read_it(client: Client, cast: Cast) -> None:
    address = [cast.project.slug]
    client.post(reverse("dashboard:write_to_all", args=address), {"text": "Version 2 is out."})
    messaging.mark_read(message=Message.objects.get(), by=cast.annotator, now=factories.NOW)
    shown = client.get(reverse("dashboard:messages", args=address))
    assert [(each["n"], each["n_read"]) for each in shown.context["threads"].to_all] == [(1, 1)]
    assert not shown.context["threads"].lines  # nobody was written to alone, nobody answered


def test_messages_refuse_what_says_nothing(client: Client, cast: Cast) -> None:
    slug = cast.project.slug
    refused = client.post(reverse("dashboard:write_to_all", args=[slug]), {"text": " "})
    assert refused.status_code == 422
    assert "Write what they should read." in refused.content.decode()
    messaging.write(membership=cast.membership(cast.annotator), text="x", by=cast.lead, now=factories.NOW)
    client.force_login(cast.annotator)
    client.post(reverse("annotate:answer_message", args=[Message.objects.get().pk]), {"answer": "x" * 501})
    assert Message.objects.get().read_at is None


@pytest.mark.parametrize("n", [2, 9])
def test_messages_cost_the_same_for_many(
    n: int, client: Client, cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(n):
        user = factories.make_user()
        members.join(project=cast.project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
        messaging.write(membership=cast.membership(user), text="Welcome.", by=cast.lead, now=factories.NOW)
    messaging.write_to_all(project=cast.project, text="All.", by=cast.lead, now=factories.NOW)
    with django_assert_num_queries(6):
        client.get(reverse("dashboard:messages", args=[cast.project.slug]))
    client.force_login(user)
    with django_assert_num_queries(2):
        client.get(reverse("annotate:messages"))
