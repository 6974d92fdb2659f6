"""Actions on many traces: each changes the selected ones or all that match, only for its roles, and says what it did
not change."""

import csv
import io

import pytest
from django.test import Client
from django.urls import reverse

from labeling import queue
from labeling.models import (
    AddedSlot,
    AdjudicationTask,
    Gold,
    QueueEntry,
    Rater,
    RaterGroup,
    Settlement,
    Trace,
    TraceTag,
)
from labeling.models.gold import GoldUse
from labeling.quality import resolve
from labeling.quality.adjudication import decide_trace
from labeling.quality.gold import make_gold
from tests import factories
from tests.dashboard.labeled_project import label_traces
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def traces(cast: Personas) -> list[int]:
    made = [factories.make_trace(cast.project, source=factories.make_source(cast.project)).pk for _ in range(4)]
    queue.enqueue(project_id=cast.project.pk, arm="uniform", trace_ids=made, slots=2, now=NOW)
    return made


def act(client: Client, cast: Personas, action: str, traces: list[int], status: int = 302, **fields: str) -> str:
    address = reverse("dashboard:change_traces", args=[cast.project.slug])
    response = client.post(address, {"action": action, "trace": traces, "audience": "all", "use": "hidden", **fields})
    assert response.status_code == status
    return response.content.decode()


def test_tags_are_added_removed_and_found(client: Client, cast: Personas, traces: list[int]) -> None:
    act(client, cast, "tag", traces[:3], tag=" look again ")
    act(client, cast, "untag", traces[:1], tag="look again")
    page = client.get(reverse("dashboard:traces", args=[cast.project.slug]), {"tag": "look again"})
    assert [row.trace.pk for row in page.context["traces"]] == [traces[2], traces[1]]
    assert 'data-tag="look again"' in page.content.decode()
    act(client, cast, "tag", traces, status=422)


def test_fields_of_the_actions_are_shown_when_opened(client: Client, cast: Personas, traces: list[int]) -> None:
    act(client, cast, "tag", traces[:1], tag="hard")
    address = reverse("dashboard:traces", args=[cast.project.slug])
    folded, opened = (client.get(address, {"tag": "hard", **query}) for query in ({}, {"actions": "open"}))
    assert [row.trace.pk for row in opened.context["traces"]] == traces[:1]
    assert [b'name="audience"' in page.content for page in (folded, opened)] == [False, True]
    assert f'hx-get="{address}?tag=hard&amp;actions=open"' in folded.content.decode()


def test_all_that_match_the_search_are_changed(client: Client, cast: Personas, traces: list[int]) -> None:
    act(client, cast, "tag", traces[:2], tag="hard")
    act(client, cast, "tag", [], scope="all", query="tag=hard", tag="harder")
    assert set(TraceTag.objects.filter(name="harder").values_list("trace", flat=True)) == set(traces[:2])


def test_traces_of_other_projects_are_never_changed(client: Client, cast: Personas, traces: list[int]) -> None:
    elsewhere = factories.make_trace(factories.make_project())
    act(client, cast, "tag", [elsewhere.pk], tag="hard")
    act(client, cast, "tag", [], scope="all", tag="hard")
    assert not TraceTag.objects.filter(trace=elsewhere).exists()
    assert TraceTag.objects.count() == 4


def test_traces_are_put_first_and_returned(client: Client, cast: Personas, traces: list[int]) -> None:
    group = RaterGroup.objects.create(project=cast.project, name="Geometry", made_at=NOW)
    rater = Rater.objects.get(project=cast.project)
    for audience in ("all", f"group:{group.pk}", f"rater:{rater.pk}"):
        act(client, cast, "first", traces[:1], audience=audience)
        entry = QueueEntry.objects.open().select_related("lane__group").get(trace=traces[0])
        assert entry.lane.arm == "chosen"
        assert (entry.lane.group is None) == (audience == "all")
    other = RaterGroup.objects.create(project=factories.make_project(), name="Geometry", made_at=NOW)
    act(client, cast, "first", traces[:1], audience=f"group:{other.pk}", status=422)
    page = client.get(reverse("dashboard:traces", args=[cast.project.slug]), {"state": "chosen"})
    assert [row.trace.pk for row in page.context["traces"]] == traces[:1]
    act(client, cast, "back", traces)
    assert not QueueEntry.objects.open().filter(lane__arm="chosen").exists()


@pytest.mark.fault
def test_adjudication_is_assigned_and_comes_first_for_its_reviewer(client: Client, cast: Personas) -> None:
    label_traces(cast, 3)
    for trace in Trace.objects.filter(project=cast.project):
        trace.settlement.state, trace.settlement.reason = "contested", ""
        trace.settlement.save()
    newest = Trace.objects.filter(project=cast.project).latest("pk")
    act(client, cast, "reviewer", [newest.pk], reviewer=str(cast.reviewer.pk))
    address = reverse("dashboard:adjudication", args=[cast.project.slug])
    assert client.get(address).context["case"]["trace"] != newest
    client.force_login(cast.reviewer)
    page = client.get(address)
    assert page.context["case"]["trace"] == newest
    assert 'data-assigned="me"' in page.content.decode()
    client.force_login(cast.lead)
    act(client, cast, "reviewer", [newest.pk])
    assert not AdjudicationTask.objects.exists()
    act(client, cast, "reviewer", [newest.pk], reviewer=str(cast.annotator.pk), status=422)


@pytest.mark.fault
def test_gold_is_made_of_consensus_and_changes_its_use(client: Client, cast: Personas) -> None:
    label_traces(cast, 3)
    decided, *others = Trace.objects.filter(project=cast.project).order_by("pk")
    decide_trace(trace_id=decided.pk, first_error=0, by=cast.lead, now=NOW)
    act(client, cast, "gold", [decided.pk, *(each.pk for each in others)])
    assert Gold.objects.active().get().trace == decided
    act(client, cast, "use", [decided.pk], use="training")
    assert Gold.objects.active().get().use == GoldUse.TRAINING
    assert QueueEntry.objects.open().get(trace=decided).lane.arm == "training"


def test_another_label_is_requested_even_for_settled_traces(client: Client, cast: Personas) -> None:
    label_traces(cast, 2)
    settled = list(Trace.objects.filter(project=cast.project).values_list("pk", flat=True))
    act(client, cast, "label", settled)
    assert AddedSlot.objects.count() >= 2


@pytest.mark.fault
def test_requeued_traces_get_all_labels_again(client: Client, cast: Personas) -> None:
    label_traces(cast, 2)
    settled = list(Trace.objects.filter(project=cast.project, settlement__state="settled").values_list("pk", flat=True))
    before = {trace: AddedSlot.objects.filter(trace=trace).count() for trace in settled}
    act(client, cast, "requeue", settled)
    cast.project.refresh_from_db()
    for trace in settled:
        assert AddedSlot.objects.filter(trace=trace).count() - before[trace] == cast.project.overlap > 1
    # The state lasts until all of them have arrived.
    (first, *_others) = settled
    raters = [factories.make_rater(cast.project) for _ in range(cast.project.overlap)]
    states = []
    for rater in raters:
        submitted_work.submit_trace(rater, Trace.objects.get(pk=first), [-1], population="opinion")
        resolve.resolve_due_traces(now=NOW)
        states.append(Settlement.objects.get(pk=first).reason)
    assert states[:-1] == ["sent_back"] * (len(raters) - 1)
    assert states[-1] != "sent_back"


def test_traces_are_withdrawn_with_a_reason(client: Client, cast: Personas, traces: list[int]) -> None:
    act(client, cast, "withdraw", traces[:2], status=422)
    act(client, cast, "withdraw", traces[:2], reason="twice")
    assert Trace.objects.available().count() == 2


def test_selection_is_exported(client: Client, cast: Personas, traces: list[int]) -> None:
    make_gold(trace=Trace.objects.get(pk=traces[0]), use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    act(client, cast, "tag", traces[1:2], tag="hard")
    rows = list(csv.DictReader(io.StringIO(act(client, cast, "export", traces[:2], status=200))))
    assert [(row["trace"], row["state"], row["tags"]) for row in rows] == [
        (str(traces[1]), "", "hard"),
        (str(traces[0]), "gold", ""),
    ]


@pytest.mark.parametrize(
    ("person", "action", "status"),
    [
        ("reviewer", "first", 403),
        ("reviewer", "withdraw", 403),
        ("reviewer", "label", 302),
        ("reviewer", "requeue", 302),
        ("engineer", "requeue", 403),
        ("engineer", "tag", 302),
        ("engineer", "gold", 403),
        ("engineer", "reviewer", 403),
        ("lead", "nonsense", 422),
    ],
)
def test_actions_are_for_their_roles(
    client: Client, cast: Personas, traces: list[int], person: str, action: str, status: int
) -> None:
    client.force_login(getattr(cast, person))
    act(client, cast, action, traces[:1], status=status, tag="x", reason="x")


def test_groups_are_saved_and_show_what_waits(client: Client, cast: Personas, traces: list[int]) -> None:
    rater = Rater.objects.get(project=cast.project)
    save = reverse("dashboard:save_group", args=[cast.project.slug])
    assert client.post(save, {"name": "Geometry", "raters": [rater.pk]}).status_code == 302
    group = RaterGroup.objects.get()
    assert list(group.raters.all()) == [rater]
    act(client, cast, "first", traces[:3], audience=f"group:{group.pk}")
    act(client, cast, "first", traces[3:], audience=f"rater:{rater.pk}")
    page = client.get(reverse("dashboard:groups", args=[cast.project.slug])).content.decode()
    assert page.count('data-waiting="3"') == page.count('data-waiting="1"') == 1
    stranger = factories.make_rater(factories.make_project())
    assert client.post(save, {"name": "Other", "raters": [stranger.pk]}).status_code == 422
