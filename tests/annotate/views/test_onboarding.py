"""The onboarding pages."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.plugin import DjangoDbBlocker

from accounts.models import User
from annotate import onboarding_progress
from labeling import onboarding, raters
from labeling.models import Assignment, Consent, GuidelineAcknowledgment, Project, Rater
from labeling.models.gold import GoldUse
from labeling.projects import lifecycle
from people import invitations, members
from people.models import Membership, Role, WorkerId
from tests import factories, module_rows
from tests.factories import NOW
from tests.labeling import onboarding_project
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def kept_project(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    with module_rows.keep_rows(django_db_blocker):
        with django_db_blocker.unblock():
            project = onboarding_project.make_project(slug="circles", training=2, screening=2, work=2)
            lifecycle.publish_guideline(project=project, body="# Rate\n\nFairly.", by=None, now=timezone.now())
            lifecycle.publish_consent_text(project=project, body="# Yes?", by=None, now=timezone.now())
        yield project.pk


@pytest.fixture
def project(kept_project: int) -> Project:
    return Project.objects.get(pk=kept_project)


@pytest.fixture
def rater(project: Project, client: Client) -> Rater:
    user = factories.make_user("ann")
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=timezone.now())
    client.force_login(user)
    return Rater.objects.get(user=user)


def page(client: Client, name: str = "enter", argument: object = "circles") -> str:
    return client.get(reverse(f"annotate:{name}", args=[argument])).content.decode()


def post(client: Client, name: str, argument: object = "circles", **data: str) -> int:
    return client.post(reverse(f"annotate:{name}", args=[argument]), data).status_code


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({}, 302),
        ({"agrees": "no", "version": "1"}, 302),
        ({"agrees": "yes"}, 404),
        ({"agrees": "yes", "version": "2"}, 404),
    ],
)
def test_consent_needs_a_checked_box_and_an_existing_version(
    data: dict[str, str], status: int, client: Client, rater: Rater
) -> None:
    assert post(client, "consent", **data) == status
    assert not Consent.objects.exists()
    assert post(client, "consent", agrees="yes", version="1") == 302
    assert Consent.objects.get().rater == rater


@pytest.mark.parametrize("version", ["", "x", "-1", "9" * 30, "²"])
def test_read_guideline_refuses_invalid_versions(version: str, client: Client, rater: Rater) -> None:
    assert post(client, "read_guideline", version=version) == 404
    assert client.get(reverse("annotate:guideline", args=["circles"]), {"version": version or "x"}).status_code == 404
    assert not GuidelineAcknowledgment.objects.exists()


def test_new_guideline_version_is_shown_before_it_can_be_confirmed(
    client: Client, rater: Rater, project: Project
) -> None:
    post(client, "consent", agrees="yes", version="1")
    lifecycle.publish_guideline(project=project, body="# Rate\n\nWell.", by=None, now=timezone.now())
    assert post(client, "read_guideline", version="1") == 302
    shown = page(client)
    assert 'data-message="warning"' in shown
    assert "Well." in shown


def test_work_page_and_claim_lead_to_the_gate(client: Client, rater: Rater) -> None:
    response = client.get(reverse("annotate:work", args=["circles"]))
    assert response["Location"] == reverse("annotate:enter", args=["circles"])
    claim = client.post(reverse("annotate:claim", args=["circles"]), "{}", content_type="application/json")
    assert (claim.status_code, claim.json()["code"], claim.json()["gate"]) == (409, "onboarding_required", "consent")


def walk_in(rater: Rater) -> None:
    project = Project.objects.select_related("guideline", "consent_text").get(pk=rater.project_id)
    assert project.consent_text is not None
    assert project.guideline is not None
    assert rater.user is not None
    onboarding.give_consent(rater=rater, text=project.consent_text, by=rater.user, now=timezone.now())
    onboarding.acknowledge_guideline(rater=rater, guideline=project.guideline, by=rater.user, now=timezone.now())


def test_payload_has_the_position_in_the_set_and_the_next_page(client: Client, rater: Rater) -> None:
    walk_in(rater)
    claim = reverse("annotate:claim", args=["circles"])
    data = client.post(claim, '{"opened": true}', content_type="application/json").json()
    assert re.findall(r"\d", data["problem"]["domain"]) == ["1", "2"]
    assert data["after"] == reverse("annotate:lesson", args=[data["assignment"]])
    onboarding_project.submit_assignment(data["assignment"], rater, timezone.now())
    post(client, "read_lesson", data["assignment"])
    onboarding_project.finish_training_trace(rater, timezone.now())
    data = client.post(claim, '{"opened": true}', content_type="application/json").json()
    assert (re.findall(r"\d", data["problem"]["domain"]), data["after"]) == (["1", "2"], None)
    onboarding_project.submit_assignment(data["assignment"], rater, timezone.now())
    data = client.post(claim, '{"opened": true}', content_type="application/json").json()
    assert data["after"] == reverse("annotate:enter", args=["circles"])
    onboarding_project.submit_assignment(data["assignment"], rater, timezone.now())
    data = client.post(claim, '{"opened": true}', content_type="application/json").json()
    assert (data["problem"]["domain"], data["after"]) == ("", None)  # regular work does not reveal its source


def test_screening_and_hidden_gold_have_no_answer_page(client: Client, rater: Rater) -> None:
    """Gold is shown only for training traces."""
    walk_in(rater)
    for _ in range(2):
        onboarding_project.finish_training_trace(rater, timezone.now())
    screening = onboarding_project.rate_next(rater, timezone.now())
    assert screening.purpose == "screening"
    trace = factories.make_trace(rater.project)
    hidden = factories.make_assignment(rater, trace, purpose="gold")
    for assignment in (screening, hidden):
        assert client.get(reverse("annotate:lesson", args=[assignment.pk])).status_code == 404
        assert post(client, "read_lesson", assignment.pk) == 404


def test_answer_page_is_only_for_its_rater(client: Client, rater: Rater, project: Project) -> None:
    walk_in(rater)
    assignment = onboarding_project.rate_next(rater, timezone.now())
    other = factories.make_user()
    raters.ensure_member(project=project, user=other, now=timezone.now())
    client.force_login(other)
    assert client.get(reverse("annotate:lesson", args=[assignment.pk])).status_code == 404
    assert post(client, "read_lesson", assignment.pk) == 404


@pytest.mark.parametrize("n", [1, 6])
def test_query_count_does_not_depend_on_the_set_size(
    n: int, client: Client, rater: Rater, project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    walk_in(rater)
    onboarding_project.add_gold_trace(project, GoldUse.TRAINING, n)
    assignment = onboarding_project.rate_next(rater, timezone.now())
    with django_assert_num_queries(16):
        page(client, "lesson", assignment.pk)


def read_outcome(text: str) -> str:
    found = re.search(r'data-outcome="(\w+)"', text)
    return found[1] if found else ""


@pytest.mark.parametrize(
    ("finish_reasons", "changes", "outcome"),
    [
        ([], {}, ""),
        (["solution"], {}, ""),
        (["give_up", "give_up", "give_up"], {}, ""),
        (["solution", "give_up"], {}, ""),
        (["solution", "found_error"], {}, "completion"),
        (["solution", "found_error"], {"paused_at": NOW, "is_paused_by_check": True}, "completion"),
        (["solution"], {"paused_at": NOW, "is_paused_by_check": True}, "failed_checks"),
        (["solution"], {"paused_at": NOW}, ""),
        (["solution", "solution"], {"stage": "failed"}, "screened_out"),
    ],
)
def test_completion_code_by_outcome(
    finish_reasons: list[str], changes: dict[str, Any], outcome: str, client: Client, rater: Rater, project: Project
) -> None:
    codes = {"completion_code": "C1", "screened_out_code": "OUT7", "failed_checks_code": "BAD3", "no_consent_code": "N"}
    Project.objects.update(completion_traces=2, **codes)
    for reason in finish_reasons:
        factories.make_submitted(rater, factories.make_trace(project), finish_reason=reason)
    Rater.objects.filter(pk=rater.pk).update(**changes)
    assert read_outcome(page(client, "done")) == outcome


def test_who_declines_consent_leaves_with_a_code(client: Client, rater: Rater) -> None:
    Project.objects.update(no_consent_code="NO1")
    response = client.post(reverse("annotate:decline_consent", args=["circles"]))
    assert read_outcome(response.content.decode()) == "no_consent"
    assert "NO1" in response.content.decode()
    assert not Membership.objects.filter(user=rater.user, left_at=None).exists()
    assert client.post(reverse("annotate:decline_consent", args=["circles"])).status_code == 404


def test_who_agreed_before_leaves_without_a_code(client: Client, rater: Rater) -> None:
    Project.objects.update(no_consent_code="NO1")
    walk_in(rater)
    assert client.post(reverse("annotate:decline_consent", args=["circles"])).status_code == 302


def test_completion_page_is_linked_from_a_closed_project(client: Client, rater: Rater) -> None:
    Project.objects.update(completion_code="C1X9")
    onboarding.admit_rater(rater_id=rater.pk, by=None, now=timezone.now())
    walk_in(rater)
    assert "C1X9" not in page(client, "done")
    onboarding_project.rate_next(rater, timezone.now())
    assert "C1X9" in page(client, "done")
    link = f'href="{reverse("annotate:done", args=["circles"])}"'
    assert link not in client.get("/").content.decode()
    Project.objects.update(state="closed")
    assert link in client.get("/").content.decode()


@pytest.mark.parametrize("query", ["PROLIFIC_PID=%3Cscript%3E", "PROLIFIC_PID=a&PROLIFIC_PID=b", "PROLIFIC_PID=%00"])
def test_hostile_worker_id_is_refused_and_creates_nothing(
    query: str, client: Client, personas: LoggedInPersonas
) -> None:
    cast = personas.cast
    Project.objects.filter(pk=cast.project.pk).update(takes_worker_ids=True)
    _, token = invitations.create_invitation(
        project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=timezone.now()
    )
    before = User.objects.count()
    address = f"{reverse('annotate:join', args=[token])}?{query}"
    for response in (client.get(address), client.post(address)):
        assert response.status_code == 422
        assert 'data-page="worker-rejected"' in response.content.decode()
        assert "<script>" not in response.content.decode()
    assert User.objects.count() == before


def test_worker_id_is_ignored_if_the_project_does_not_use_them(client: Client, personas: LoggedInPersonas) -> None:
    cast = personas.cast
    _, token = invitations.create_invitation(
        project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=timezone.now()
    )
    shown = client.get(f"{reverse('annotate:join', args=[token])}?PROLIFIC_PID=abc").content.decode()
    assert 'data-join="new-account"' in shown
    assert not WorkerId.objects.exists()
    assert not Assignment.objects.exists()


def test_new_guideline_keeps_the_progress_of_later_steps(rater: Rater, project: Project) -> None:
    text = project.consent_text_id
    Rater.objects.filter(pk=rater.pk).update(stage="working", agreed_text=text, read_guideline=None)
    rater.refresh_from_db()
    project = Project.objects.get(pk=project.pk)
    states = {step.key: step.state for step in onboarding_progress.load_onboarding_path(rater, project).steps}
    assert states == {"reading": "here", "training": "done", "screening": "done", "work": "ahead"}


def test_failed_rater_has_no_attempts_left(rater: Rater, project: Project) -> None:
    Rater.objects.filter(pk=rater.pk).update(stage="failed")
    rater.refresh_from_db()
    path = onboarding_progress.load_onboarding_path(rater, project)
    assert (path.attempts_left, [step.state for step in path.steps if step.key == "screening"]) == (0, ["here"])
