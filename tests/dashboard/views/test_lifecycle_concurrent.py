"""Forms submitted twice at the same time act once."""

from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from exports import snapshots
from jobs.models import Job
from labeling.models import Project
from people.models import Membership
from tests import factories
from tests.concurrency import run_at_once
from tests.exports.url_cases import snapshot_args
from tests.people.personas import make_personas

pytestmark = pytest.mark.usefixtures("real_connections")


def send_twice(user: User, address: str, data: dict[str, Any] | None = None) -> list[int]:
    clients = [Client(), Client()]
    for client in clients:
        client.force_login(user)
    answers: list[Any] = run_at_once(*[partial(client.post, address, data) for client in clients])
    return sorted(getattr(each, "status_code", 500) for each in answers)


def test_project_is_created_once() -> None:
    data = {"name": "Sums", "slug": "sums", "protocol": "every_step", "overlap": 2}
    assert send_twice(factories.make_user(is_staff=True), reverse("dashboard:new_project"), data) == [302, 422]
    assert Project.objects.count() == 1


def test_project_is_cloned_once() -> None:
    cast = make_personas()
    data = {"name": "More sums", "slug": "more-sums"}
    assert send_twice(cast.owner, reverse("dashboard:create_project_clone", args=[cast.project.slug]), data) == [
        302,
        422,
    ]


def test_member_is_removed_once() -> None:
    cast = make_personas()
    member = cast.membership(cast.annotator)
    first, second = send_twice(cast.owner, reverse("dashboard:remove_member", args=[cast.project.slug, member.pk]))
    assert (first, second in {403, 404}) == (302, True)
    assert Membership.objects.get(pk=member.pk).left_at is not None


def test_snapshot_is_retried_once() -> None:
    cast = make_personas()
    named = snapshot_args(cast)
    made = cast.project.snapshots.get()
    Job.objects.filter(subject=snapshots.job_subject(made)).update(state="failed", failure="x", ended_at=factories.NOW)
    assert send_twice(cast.engineer, reverse("dashboard:retry_snapshot", kwargs=named)) == [302, 302]
    assert Job.objects.get(subject=snapshots.job_subject(made)).state == "queued"
