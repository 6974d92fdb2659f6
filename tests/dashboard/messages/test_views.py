"""Leads write, people read and answer, leads see the thread: all of it by plain forms."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from labeling.models import Rater
from people import member_messages, members
from people.models import MemberMessage, Role
from tests import factories
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.lead)
    return cast


def test_message_goes_to_one_person_and_its_answer_comes_back(client: Client, cast: Personas) -> None:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    of_thread = [cast.project.slug, rater.pk]
    client.post(reverse("dashboard:send_message", args=of_thread), {"text": "Is <b>7</b> prime?"})
    client.force_login(cast.annotator)
    for place in (reverse("annotate:home"), reverse("annotate:unread", args=[cast.project.slug])):
        assert "Is &lt;b&gt;7&lt;/b&gt; prime?" in client.get(place).content.decode()
    client.post(reverse("annotate:answer_message", args=[MemberMessage.objects.get().pk]), {"answer": "It is."})
    assert "prime" not in client.get(reverse("annotate:home")).content.decode()
    assert "It is." in client.get(reverse("annotate:messages")).content.decode()
    client.force_login(cast.lead)
    waiting = client.get(reverse("dashboard:overview", args=[cast.project.slug])).content.decode()
    assert "New answer" in waiting
    for place in ("annotators", "messages"):
        assert "new answer" in client.get(reverse(f"dashboard:{place}", args=[cast.project.slug])).content.decode()
    assert "It is." in client.get(reverse("dashboard:thread", args=of_thread)).content.decode()
    client.post(reverse("dashboard:mark_answers_seen", args=of_thread))
    assert "new answer" not in client.get(reverse("dashboard:annotators", args=of_thread[:1])).content.decode()


def test_message_to_all_says_how_many_read_it(client: Client, cast: Personas) -> None:
    address = [cast.project.slug]
    client.post(reverse("dashboard:send_message_to_all", args=address), {"text": "Version 2 is out."})
    member_messages.mark_read(message=MemberMessage.objects.get(), by=cast.annotator, now=factories.NOW)
    shown = client.get(reverse("dashboard:messages", args=address))
    assert [(each["n"], each["n_read"]) for each in shown.context["threads"].to_all] == [(1, 1)]
    assert not shown.context["threads"].lines  # nobody was written to alone, nobody answered


def test_messages_refuse_what_says_nothing(client: Client, cast: Personas) -> None:
    slug = cast.project.slug
    refused = client.post(reverse("dashboard:send_message_to_all", args=[slug]), {"text": " "})
    assert refused.status_code == 422
    assert "Write what they should read." in refused.content.decode()
    member_messages.send_message(membership=cast.membership(cast.annotator), text="x", by=cast.lead, now=factories.NOW)
    client.force_login(cast.annotator)
    client.post(reverse("annotate:answer_message", args=[MemberMessage.objects.get().pk]), {"answer": "x" * 501})
    assert MemberMessage.objects.get().read_at is None


@pytest.mark.parametrize("n", [2, 9])
def test_messages_cost_the_same_for_many(
    n: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(n):
        user = factories.make_user()
        members.add_member(project=cast.project, user=user, role=Role.ANNOTATOR, now=factories.NOW)
        member_messages.send_message(membership=cast.membership(user), text="Welcome.", by=cast.lead, now=factories.NOW)
    member_messages.send_to_all(project=cast.project, text="All.", by=cast.lead, now=factories.NOW)
    with django_assert_num_queries(6):
        client.get(reverse("dashboard:messages", args=[cast.project.slug]))
    client.force_login(user)
    with django_assert_num_queries(2):
        client.get(reverse("annotate:messages"))
