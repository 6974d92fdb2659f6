"""Questions to the leads, disputes of training answers, and answers to retired gold."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Assignment, Project, Rater
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from people.models import MemberMessage
from tests import factories, url_arguments
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(client: Client, personas: LoggedInPersonas) -> Personas:
    cast = personas.cast
    client.force_login(cast.annotator)
    return cast


def open_trace(cast: Personas) -> Assignment:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    return factories.make_assignment(rater, factories.make_trace(cast.project, ["One.", "Two."]))


@pytest.mark.fault
def test_question_and_answer_beside_the_trace(client: Client, cast: Personas) -> None:
    row = open_trace(cast)
    asked = client.post(reverse("annotate:ask", args=[row.pk]), {"text": "Is <i>2</i> fine?", "step": "1"})
    assert 'data-talk="1" data-open="yes"' in asked.content.decode()
    assert "Is &lt;i&gt;2&lt;/i&gt; fine?" in asked.content.decode()
    unread = reverse("annotate:unread", args=[cast.project.slug])
    assert f'data-asked="{row.pk}"' in client.get(unread).content.decode()
    client.force_login(cast.lead)
    trace_page = reverse("dashboard:trace", args=[cast.project.slug, row.trace_id])
    assert 'data-talk="1" data-open="yes"' in client.get(trace_page).content.decode()
    assert client.get(reverse("annotate:home")).context["managed"][0].pending
    answer_url = reverse("dashboard:answer_question", args=[cast.project.slug, row.trace_id, row.rater_id])
    assert client.post(answer_url, {"text": "It is.", "step": "1"})["Location"] == f"{trace_page}#questions"
    assert 'data-open="no"' in client.get(trace_page).content.decode()
    client.post(answer_url, {"text": "Not asked.", "step": "0"})
    assert not MemberMessage.objects.filter(text="Not asked.").exists()
    client.force_login(cast.annotator)
    shown = client.get(reverse("annotate:questions", args=[row.pk])).content.decode()
    assert 'data-open="no"' in shown
    assert 'data-news="yes"' in shown
    answer = MemberMessage.objects.get(text="It is.")
    assert client.get(reverse("annotate:message_trace", args=[answer.pk]))["Location"].endswith(f"?assignment={row.pk}")
    assert (
        reverse("annotate:answer_message", args=[answer.pk])
        in client.get(reverse("annotate:messages")).content.decode()
    )


@pytest.mark.parametrize("odd", [{"text": " "}, {"text": "x", "step": "7"}, {"text": "x" * 2001}])
def test_odd_question_is_refused(odd: dict[str, str], client: Client, cast: Personas) -> None:
    assert client.post(reverse("annotate:ask", args=[open_trace(cast).pk]), odd).status_code == 422
    assert not MemberMessage.objects.exists()


def test_training_answer_is_disputed_once_it_was_seen(client: Client, cast: Personas) -> None:
    row = Assignment.objects.get(pk=str(url_arguments.training_args(cast)["assignment"]))
    lesson = reverse("annotate:lesson", args=[row.pk])
    dispute = reverse("annotate:dispute", args=[row.pk])
    assert dispute in client.get(lesson).content.decode()
    assert client.post(dispute, {"text": "It is right.", "step": "0"})["Location"] == lesson
    assert MemberMessage.objects.get().kind == "dispute"
    assert 'data-talk="0" data-open="yes"' in client.get(lesson).content.decode()
    unseen = open_trace(cast)
    client.post(reverse("annotate:dispute", args=[unseen.pk]), {"text": "x", "step": "0"})
    assert MemberMessage.objects.count() == 1


@pytest.mark.fault
def test_retired_gold_is_shown_only_when_it_is_harmless(client: Client, cast: Personas) -> None:
    row = Assignment.objects.get(pk=str(url_arguments.retired_gold_args(cast)["assignment"]))
    page = reverse("annotate:retired_answer", args=[row.pk])

    def is_shown() -> bool:
        link = page in client.get(reverse("annotate:submitted_one", args=[row.pk])).content.decode()
        assert client.get(page).status_code == (200 if link else 404)
        return link

    assert is_shown()
    projects = Project.objects.filter(pk=cast.project.pk)
    for name, harmful, harmless in (("shows_retired_gold", False, True), ("correction_days", 9999, 0)):
        projects.update(**{name: harmful})
        assert not is_shown()
        projects.update(**{name: harmless})
    make_gold(trace=row.trace, use=GoldUse.SCREENING, accepted_first_errors=[0], by=None, now=factories.NOW)
    assert not is_shown()
