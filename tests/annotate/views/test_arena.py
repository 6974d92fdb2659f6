"""The pages of the arena: an attempt, a blind check, and the page of leads."""

import json
import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse

from events.models import Event
from labeling.models import Project, Rater
from people import members
from people.models import Role
from prm.models import ArenaCheck, ArenaEdit
from tests import factories
from tests.prm import arena_project, canary_project
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Iterator[Project]:
    project = factories.make_project(overlap=2)
    arena_project.make_settled(project)
    with scorer_servers.running_scorer(scorer_servers.FakeVllmServer(rows=arena_project.score_by_words)) as address:
        arena_project.open_arena(project, address)
        yield project


def log_in(client: Client, project: Project, role: Role) -> None:
    user = factories.make_user()
    members.add_member(project=project, user=user, role=role, now=factories.NOW)
    client.force_login(user)


@pytest.mark.fault
def test_annotator_fools_the_prm_and_another_checks_blind(client: Client, project: Project) -> None:
    log_in(client, project, Role.ANNOTATOR)
    assert reverse("annotate:arena", args=[project.slug]) in client.get(reverse("annotate:home")).content.decode()
    page = client.get(reverse("annotate:arena", args=[project.slug])).content.decode()
    trace = int(re.findall(r'name="trace" value="(\d+)"', page)[0])
    address = reverse("annotate:arena_try", args=[project.slug])
    text = re.findall(r"<textarea[^>]*name=\"text\"[^>]*>\s*(.*?)</textarea>", page, re.S)[0]
    attempt = {"trace": trace, "text": text.replace("total", "sum"), "reason": "It is the price of one."}
    missed = client.post(address, attempt)
    assert missed.status_code == 200
    assert 'data-fooled="no"' in missed.content.decode()
    assert client.post(address, attempt | {"text": text}).status_code == 422
    assert client.post(address, attempt | {"text": f"clearly {text}"}).status_code == 302
    edit = ArenaEdit.objects.get(state="waiting")
    assert 'data-edit-state="waiting"' in client.get(reverse("annotate:arena", args=[project.slug])).content.decode()

    log_in(client, project, Role.ANNOTATOR)
    checks = reverse("annotate:arena_check", args=[project.slug])
    assert "serve-check" in client.get(checks).content.decode()
    assert client.post(reverse("annotate:serve_arena_check", args=[project.slug])).status_code == 302
    for _ in range(10):
        open_check = ArenaCheck.objects.filter(answer="").first()
        if open_check is None:
            break
        page = client.get(checks).content.decode()
        assert "arena-edit" not in page
        answer = reverse("annotate:answer_arena_check", args=[open_check.pk])
        assert client.post(answer, {"answer": "perhaps"}).status_code == 422
        assert client.post(answer, {"answer": "wrong"}).status_code == 302
    assert edit.checks.get().answer == "wrong"

    log_in(client, project, Role.LEAD)
    page = client.get(reverse("dashboard:arena", args=[project.slug])).content.decode()
    assert 'data-arena="open"' in page
    assert 'data-count="waiting">1<' in page
    assert client.post(reverse("dashboard:close_arena", args=[project.slug])).status_code == 302
    assert 'data-arena="closed"' in client.get(reverse("dashboard:arena", args=[project.slug])).content.decode()
    assert client.post(reverse("dashboard:open_arena", args=[project.slug])).status_code == 302
    assert Rater.objects.filter(project=project, arena_checks__isnull=False).distinct().count() == 1


def test_hard_negatives_are_downloaded_by_roles_that_may_take_data_out(client: Client) -> None:
    project = factories.make_project()
    prm = canary_project.register_scorer(project, "http://127.0.0.1:1")
    (trace,) = arena_project.make_settled(project, 1)
    ArenaEdit.objects.create(
        project=project,
        trace=trace,
        position=1,
        rater=factories.make_rater(project),
        prm=prm,
        text="clearly ½",
        reason="Still wrong.",
        n_changed=1,
        p_right_before=0.1,
        p_right_after=0.9,
        state="confirmed",
        made_at=factories.NOW,
    )
    page, address = (reverse(f"dashboard:{name}", args=[project.slug]) for name in ("arena", "hard_negatives"))
    log_in(client, project, Role.REVIEWER)
    assert address not in client.get(page).content.decode()
    assert client.get(address).status_code == 403
    log_in(client, project, Role.ENGINEER)
    assert address in client.get(page).content.decode()
    (line,) = client.get(address).content.decode().splitlines()
    assert (json.loads(line)["steps"][-1], json.loads(line)["label"]) == ("clearly ½", 1)
    event = Event.objects.get(what="download.made")
    assert (event.project, event.detail["rows"], event.detail["has_names"]) == (project.pk, 1, False)
