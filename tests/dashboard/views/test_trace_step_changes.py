"""The page on which leads split and merge the steps of a trace."""

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Rater, Trace
from tests import factories
from tests.people.personas import Personas

pytestmark = pytest.mark.django_db


def page_url(cast: Personas, trace: Trace, name: str = "edit_trace_steps") -> str:
    return reverse(f"dashboard:{name}", args=[cast.project.slug, trace.pk])


@pytest.mark.fault
def test_marks_and_boxes_make_a_new_trace_that_can_be_undone(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project, steps=["One. Two.\nThree.", "Four.", "Five."])
    client.force_login(cast.engineer)
    assert "data-change-steps" in client.get(page_url(cast, trace, "trace")).content.decode()
    page = client.get(page_url(cast, trace))
    mark = page.context["mark"]
    assert [step.entered for step in page.context["steps"]] == ["One. Two.\nThree.", "Four.", "Five."]
    form = {"text-0": f"One.{mark} Two.\r\n{mark}Three.", "text-1": "Four.", "text-2": "Five.", "merge-2": "on"}
    response = client.post(page_url(cast, trace), form)
    new = Trace.objects.available().latest("pk")
    assert response["Location"] == page_url(cast, new, "trace")
    shown = client.get(response["Location"])
    assert [step.texts[0].option.text for step in shown.context["steps"]] == ["One.", "Two.", "Three.", "Four.\nFive."]
    assert 'id="restore-steps"' in shown.content.decode()
    assert shown.context["history"][0].event.what == "trace.made_by_hand"
    assert str(trace.pk) in shown.context["history"][0].detail
    restored = client.post(page_url(cast, new, "restore_trace_steps"))
    assert restored["Location"] == page_url(cast, trace, "trace")
    *_, message = client.post(page_url(cast, new, "restore_trace_steps"), follow=True).context["messages"]
    assert message.level_tag == "warning"


def test_changed_text_and_unchanged_steps_are_refused_with_what_was_entered(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project, steps=["One. Two.", "Three."])
    client.force_login(cast.lead)
    for form in ({"text-0": "One. 2.", "merge-1": "on"}, {"text-0": "One. Two."}, {"text-0": "<cut>One. Two."}):
        response = client.post(page_url(cast, trace), form)
        assert response.status_code == 422
        assert response.context["problem"]
        first, second = response.context["steps"]
        assert (first.entered, second.is_merged) == (form["text-0"], "merge-1" in form)
    assert Trace.objects.get() == trace


def test_steps_of_an_opened_trace_are_not_offered(client: Client, cast: Personas) -> None:
    trace = factories.make_trace(cast.project)
    factories.make_assignment(Rater.objects.get(user=cast.annotator), trace, opened_at=factories.NOW)
    client.force_login(cast.lead)
    assert "data-change-steps" not in client.get(page_url(cast, trace, "trace")).content.decode()
    response = client.get(page_url(cast, trace))
    assert (response.status_code, response.context["steps"]) == (200, [])
    assert client.post(page_url(cast, trace), {"merge-1": "on"}).status_code == 422
    assert Trace.objects.get() == trace
