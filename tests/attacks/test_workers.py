"""The link of a study and the ID of a worker are not enough to impersonate that worker."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import tokens
from accounts.models import User
from labeling.models import Project
from people import crowd_workers, invitations
from people.models import Invitation, Role, WorkerDevice, WorkerId
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
WORKER = "5f1aaa"


@pytest.fixture
def link(personas: LoggedInPersonas) -> str:
    cast = personas.cast
    Project.objects.filter(pk=cast.project.pk).update(takes_worker_ids=True, completion_code="C1X9")
    _, token = invitations.create_invitation(
        project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=timezone.now(), uses_allowed=3
    )
    return reverse("annotate:join", args=[token])


def enter(client: Client, link: str, worker: str = WORKER, session: str = "one") -> int:
    return client.post(f"{link}?PROLIFIC_PID={worker}&SESSION_ID={session}").status_code


def is_logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_worker_is_not_taken_over_from_another_browser(personas: LoggedInPersonas, link: str) -> None:
    worker, attacker = Client(), Client()
    assert enter(worker, link) == 302
    assert enter(attacker, link, session="forged") == 403
    assert enter(attacker, link, session="forged") == 403
    assert not is_logged_in(attacker)
    assert WorkerId.objects.get().session == "one"
    worker.post(reverse("account_logout"))
    assert not is_logged_in(worker)
    assert enter(worker, link) == 302  # the same browser
    device = WorkerDevice.objects.get(released_at=None)
    user, project = WorkerId.objects.get().user, personas.cast.project
    member = user.memberships.get().pk
    release = reverse("dashboard:release_device", args=[project.slug, member, device.pk])
    assert release in personas.client("lead").get(reverse("dashboard:members", args=[project.slug])).content.decode()
    assert personas.client("lead").post(release).status_code == 302
    assert enter(attacker, link) == 302


@pytest.mark.fault
def test_invented_ids_are_limited_by_the_places_of_the_study(link: str) -> None:
    assert [enter(Client(), link, f"sybil{n}") for n in range(6)] == [302, 302, 302, 410, 410, 410]
    assert Invitation.objects.get().uses == WorkerId.objects.count() == 3


def test_a_forged_signature_creates_nothing(personas: LoggedInPersonas, link: str) -> None:
    Project.objects.filter(pk=personas.cast.project.pk).update(signature_parameter="sig")
    project = Project.objects.get(pk=personas.cast.project.pk)
    visit = crowd_workers.CrowdVisit(WORKER, "", "one")
    good = crowd_workers.sign_visit(project=project, visit=visit)
    forged = crowd_workers.sign_visit(project=Project(pk=project.pk + 1), visit=visit)
    for signature in ("", forged, good[:-1] + ("0" if good[-1] != "0" else "1"), "é"):
        assert Client().post(f"{link}?PROLIFIC_PID={WORKER}&SESSION_ID=one&sig={signature}").status_code == 422
    assert Client().post(f"{link}?PROLIFIC_PID={WORKER}&SESSION_ID=two&sig={good}").status_code == 422
    assert not WorkerId.objects.exists()
    assert Client().post(f"{link}?PROLIFIC_PID={WORKER}&SESSION_ID=one&sig={good}").status_code == 302


def test_worker_accounts_have_no_tokens_and_no_password(personas: LoggedInPersonas, link: str) -> None:
    client = Client()
    enter(client, link)
    user = User.objects.get(is_worker=True)
    for name in ("tokens", "account_change_password"):
        assert client.get(reverse(name)).status_code == 404
        assert client.post(reverse(name), {"name": "x", "scopes": ["read"], "days": "30"}).status_code == 404
    _, secret = tokens.create_api_token(user=user, name="old", scopes=["read"], lasts=None, now=timezone.now())
    assert tokens.find_api_token(secret=secret, now=timezone.now()) is None
    member, project = user.memberships.get().pk, personas.cast.project
    reset = reverse("dashboard:create_reset_link", args=[project.slug, member])
    assert personas.client("owner").post(reset).status_code == 403
