"""Steering and pay by API: the same actions and roles as on the pages."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from events.models import Event
from labeling import queue
from labeling.models import AdjudicationTask, Lane, Project, QueueEntry, Rater, RaterGroup, SteeringRule, Trace
from labeling.quality import workdays
from labeling.traces import tags
from tests import factories
from tests.api import api_clients
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


@pytest.fixture
def traces(cast: Personas) -> list[int]:
    """Four traces in the queue; the last one has metadata."""
    source = factories.make_source(cast.project)
    made = [factories.make_trace(cast.project, source=source, ref=f"t{n}").pk for n in range(4)]
    Trace.objects.filter(pk=made[3]).update(metadata={"level": 5, "of": {"a": 1}})
    queue.enqueue(project_id=cast.project.pk, arm="uniform", trace_ids=made, slots=2, now=NOW)
    return made


def steer(client: Client, cast: Personas, status: int = 200, **body: Any) -> dict[str, Any]:
    address = reverse("api:steer_traces", args=[cast.project.slug])
    response = client.post(address, body, content_type="application/json")
    assert response.status_code == status, response.content
    return dict(response.json())


def tagged(project: Project, name: str) -> list[int]:
    rows = Trace.objects.filter(project=project, tags__name=name).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def test_traces_are_chosen_by_what_is_known_of_them(cast: Personas, traces: list[int]) -> None:
    client = api_clients.make_client(cast.engineer)
    tags.add_tag(project_id=cast.project.pk, trace_ids=traces[:2], name="old", by=None, now=NOW)
    choices: list[tuple[dict[str, Any], list[int]]] = [
        ({"traces": traces[:1]}, traces[:1]),
        ({"refs": ["t1", "t2", "none"]}, traces[1:3]),
        ({"tagged": "old", "refs": ["t1"]}, traces[1:2]),
        ({"metadata": {"level": 5}}, traces[3:]),
        ({"metadata": {"of": {"a": 1}}, "file": "traces"}, traces[3:]),
        ({"domain": "none"}, []),
    ]
    for number, (choice, expected) in enumerate(choices):
        assert steer(client, cast, action="tag", tag=f"new{number}", **choice) == {"done": len(expected), "skipped": {}}
        assert tagged(cast.project, f"new{number}") == expected
    steer(client, cast, action="untag", tag="new0", traces=traces)
    assert tagged(cast.project, "new0") == []
    page = client.get(reverse("api:traces", args=[cast.project.slug])).json()["traces"]
    assert [(each["ref"], each["metadata"], "old" in each["tags"]) for each in page][1::2] == [
        ("t1", {}, True),
        ("t3", {"level": 5, "of": {"a": 1}}, False),
    ]


@pytest.mark.parametrize(
    "body",
    [
        {"action": "tag", "tag": "x"},
        {"action": "tag", "traces": [1]},
        {"action": "tag", "tag": "x", "trace": [1]},
        {"action": "paint", "traces": [1]},
        {"action": "first", "traces": [1], "group": "none"},
        {"action": "first", "traces": [1], "rater": "nobody"},
        {"action": "first", "traces": [1], "rater": "annotator", "group": "g"},
        {"action": "reviewer", "traces": [1], "reviewer": "annotator"},
        {"action": "withdraw", "traces": [1]},
    ],
)
def test_incomplete_and_unknown_orders_are_refused(cast: Personas, body: dict[str, Any]) -> None:
    assert steer(api_clients.make_client(cast.lead), cast, 422, **body)["detail"]


def test_each_action_needs_its_role_and_the_scope(cast: Personas, traces: list[int]) -> None:
    engineer = api_clients.make_client(cast.engineer)
    for action in ("first", "back", "reviewer", "label"):
        steer(engineer, cast, 403, action=action, traces=traces)
    steer(api_clients.make_client(cast.viewer), cast, 403, action="tag", tag="x", traces=traces)
    steer(api_clients.make_client(cast.lead, "read"), cast, 403, action="tag", tag="x", traces=traces)


@pytest.mark.fault
def test_leads_put_first_assign_and_withdraw(cast: Personas, traces: list[int]) -> None:
    client = api_clients.make_client(cast.lead)
    rater = Rater.objects.get(user=cast.annotator)
    steer(client, cast, action="first", traces=traces[:1])
    steer(client, cast, action="first", traces=traces[1:2], rater=rater.labeler)
    steer(client, cast, action="first", traces=traces[2:3], rater="annotator")
    lanes = Lane.objects.filter(entries__in=QueueEntry.objects.open(), arm="chosen").distinct()
    assert {lane.group and lane.group.person_id for lane in lanes} == {None, rater.pk}
    assert steer(client, cast, action="back", traces=traces)["done"] == 3
    steer(client, cast, action="reviewer", traces=traces[:2], reviewer="reviewer")
    assert AdjudicationTask.objects.filter(reviewer=cast.reviewer).count() == 2
    steer(client, cast, action="reviewer", traces=traces[:2])
    assert not AdjudicationTask.objects.exists()
    assert steer(client, cast, action="withdraw", traces=traces[:2], reason="twice")["done"] == 2
    assert steer(client, cast, action="label", traces=traces[:1])["skipped"]


def test_groups_and_rules(cast: Personas, traces: list[int]) -> None:
    client = api_clients.make_client(cast.lead)
    groups, rules = (reverse(f"api:{name}", args=[cast.project.slug]) for name in ("groups", "rules"))
    body = {"name": "Geometry", "raters": ["annotator"]}
    assert client.put(groups, body, content_type="application/json").json() == body
    wrong = client.put(groups, {**body, "raters": ["nobody"]}, content_type="application/json")
    assert wrong.status_code == 422
    assert client.get(groups).json() == [body]
    steer(client, cast, action="first", traces=traces, group="Geometry")
    rule = {"share": 0.5, "group": "Geometry", "domain": "x"}
    (made,) = client.post(rules, rule, content_type="application/json").json()
    assert made == {"id": made["id"], "file": "", **rule}
    assert client.get(rules).json() == [made]
    address = reverse("api:group", args=[cast.project.slug, "Geometry"])
    assert [client.delete(address).status_code for _ in range(2)] == [204, 404]
    assert SteeringRule.objects.get().stopped_at
    assert RaterGroup.objects.named().count() == 0
    assert not QueueEntry.objects.open().filter(lane__arm="chosen").exists()
    assert client.get(rules).json() == []


def test_pay_has_names_and_is_logged(cast: Personas) -> None:
    Project.objects.filter(pk=cast.project.pk).update(pay_per_hour=Decimal(20))
    rater = Rater.objects.get(user=cast.annotator)
    factories.make_submitted(rater, factories.make_trace(cast.project), ms=3_600_000)
    workdays.update_workdays(project_id=cast.project.pk, now=NOW)
    address = reverse("api:pay", args=[cast.project.slug])
    client = api_clients.make_client(cast.lead)
    (row,) = client.get(address, {"period": "week"}).json()
    assert (row["username"], row["pseudonym"], row["traces"]) == ("annotator", rater.labeler, 1)
    assert row["begins"]
    assert Event.objects.get(what="download.made").detail == {"file": "sums-pay.json", "has_names": True, "rows": 1}
    assert client.get(address, {"since": "2001-01-01", "until": "2001-01-02"}).json() == []
    assert client.get(address, {"form": "2001-01-01"}).status_code == 422
