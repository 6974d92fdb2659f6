"""Leads write, annotators read and answer, leads see the thread."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from dashboard.views import messages
from labeling.models import Rater
from people import member_messages, members
from people.models import MemberMessage, Role
from tests import factories
from tests.people.personas import Personas

pytestmark = pytest.mark.django_db


@pytest.mark.fault
def test_message_and_its_answer(client: Client, cast: Personas) -> None:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    thread_args = [cast.project.slug, rater.pk]
    client.post(reverse("dashboard:send_message", args=thread_args), {"text": "Is <b>7</b> prime?"})
    client.force_login(cast.annotator)
    for place in (reverse("annotate:home"), reverse("annotate:unread", args=[cast.project.slug])):
        assert "Is &lt;b&gt;7&lt;/b&gt; prime?" in client.get(place).content.decode()
    client.post(reverse("annotate:answer_message", args=[MemberMessage.objects.get().pk]), {"answer": "It is."})
    assert "prime" not in client.get(reverse("annotate:home")).content.decode()
    assert "It is." in client.get(reverse("annotate:messages")).content.decode()
    client.force_login(cast.lead)
    assert messages.find_unseen_answers(cast.project) == {cast.annotator.pk}
    overview, annotators = (
        reverse(f"dashboard:{name}", args=[cast.project.slug]) for name in ("overview", "annotators")
    )
    thread = reverse("dashboard:thread", args=thread_args)
    assert "answers" in {item.key for item in client.get(overview).context["todo"]}
    links = client.get(annotators).content.decode().count(thread)
    inbox = reverse("dashboard:messages", args=[cast.project.slug])
    assert "data-new-answer" in client.get(inbox).content.decode()
    assert "It is." in client.get(reverse("dashboard:thread", args=thread_args)).content.decode()
    client.post(reverse("dashboard:mark_answers_seen", args=thread_args))
    assert "data-new-answer" not in client.get(inbox).content.decode()
    assert messages.find_unseen_answers(cast.project) == set()
    assert "answers" not in {item.key for item in client.get(overview).context["todo"]}
    assert client.get(annotators).content.decode().count(thread) == links - 1


def test_message_to_all_counts_its_readers(client: Client, cast: Personas) -> None:
    address = [cast.project.slug]
    client.post(reverse("dashboard:send_message_to_all", args=address), {"text": "Version 2 is out."})
    member_messages.mark_read(message=MemberMessage.objects.get(), by=cast.annotator, now=factories.NOW)
    shown = client.get(reverse("dashboard:messages", args=address))
    assert [(each["n"], each["n_read"]) for each in shown.context["to_all"]] == [(1, 1)]
    assert not shown.context["threads"]


def test_empty_message_is_refused(client: Client, cast: Personas) -> None:
    slug = cast.project.slug
    refused = client.post(reverse("dashboard:send_message_to_all", args=[slug]), {"text": " "})
    assert refused.status_code == 422
    assert refused.context["form"].has_error("text", "required")
    member_messages.send_message(membership=cast.membership(cast.annotator), text="x", by=cast.lead, now=factories.NOW)
    client.force_login(cast.annotator)
    client.post(reverse("annotate:answer_message", args=[MemberMessage.objects.get().pk]), {"answer": "x" * 501})
    assert MemberMessage.objects.get().read_at is None


@pytest.mark.parametrize("n", [2, 9])
def test_query_count_does_not_depend_on_messages(
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
