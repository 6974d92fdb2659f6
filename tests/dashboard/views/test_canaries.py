"""The page of gaming canaries."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobs.models import Job
from machines.models import CanaryVerdict, JudgeRun
from people import members
from people.models import Role
from prm import canaries
from prm.models import CanaryScore, CanarySet
from tests import factories
from tests.machines import judged_project
from tests.prm import canary_project

pytestmark = pytest.mark.django_db


@pytest.mark.fault
def test_lead_freezes_canaries_and_compares_versions(client: Client) -> None:
    project, lead = canary_project.make_project(12), factories.make_user()
    members.add_member(project=project, user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    page = reverse("dashboard:canaries", args=[project.slug])
    assert client.post(reverse("dashboard:freeze_canaries", args=[project.slug]), {"n": 5}).status_code == 422
    assert client.post(reverse("dashboard:freeze_canaries", args=[project.slug]), {"n": 40}).status_code == 302
    row = CanarySet.objects.get()
    prm = canary_project.register_scorer(project, "http://127.0.0.1:1")
    response = client.post(reverse("dashboard:score_canaries", args=[project.slug]), {"prm": prm.pk})
    assert response.status_code == 302
    assert Job.objects.get(kind=canaries.KIND).subject == f"prm:{prm.pk}"
    CanaryScore.objects.bulk_create(
        CanaryScore(prm=prm, canary=each, numbers=[0.5] * len(each.steps), scored_at=factories.NOW)
        for each in row.canaries.all()
    )
    content = client.get(page).content.decode()
    assert f'data-version="PRM {prm.label}"' in content
    assert 'data-set="1"' in content
    assert "data-easier" not in content
    assert not any(each.steps[0][2] in content for each in row.canaries.all())  # the texts stay hidden
    on_prm = client.get(reverse("dashboard:prm", args=[project.slug, prm.version])).content.decode()
    assert 'data-canary-set="1"' in on_prm


@pytest.mark.fault
def test_queries_do_not_grow_with_versions(client: Client) -> None:
    project, lead = canary_project.make_project(), factories.make_user()
    members.add_member(project=project, user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    row = canary_project.freeze(project)
    page = reverse("dashboard:canaries", args=[project.slug])
    counts = []
    for n in (1, 4):
        for _ in range(n):
            prm = canary_project.register_scorer(project, "http://127.0.0.1:1")
            judge = judged_project.make_judge(project)
            run = JudgeRun.objects.create(judge=judge, last_trace=0, asked_at=factories.NOW, scope="canaries")
            for each in row.canaries.all():
                CanaryScore.objects.create(
                    prm=prm, canary=each, numbers=[0.5] * len(each.steps), scored_at=factories.NOW
                )
                CanaryVerdict.objects.create(
                    judge=judge,
                    run=run,
                    canary=each,
                    n_votes=1,
                    n_parsed=1,
                    first_errors=[[None, 1.0]],
                    judged_at=factories.NOW,
                )
        with CaptureQueriesContext(connection) as queries:
            content = client.get(page).content.decode()
        counts.append(len(queries))
    assert content.count("data-version=") == 10
    assert counts[0] == counts[1]


def test_pushed_prm_is_not_offered(client: Client) -> None:
    project, lead = canary_project.make_project(), factories.make_user()
    members.add_member(project=project, user=lead, role=Role.LEAD, now=factories.NOW)
    client.force_login(lead)
    canary_project.freeze(project)
    prm = judged_project.make_prm(project)
    response = client.post(reverse("dashboard:score_canaries", args=[project.slug]), {"prm": prm.pk})
    assert response.status_code == 422
