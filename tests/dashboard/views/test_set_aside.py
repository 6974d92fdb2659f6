"""Setting labels aside on the pages, members who are removed and restored, and settled traces that are changed."""

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.views.annotators import load_annotators
from events.models import Event
from jobs import runner
from jobs.models import Job
from labeling import overlap_change, queue
from labeling.models import Assignment, QueueEntry, Rater, SetAside, Settlement, Trace
from labeling.quality import project_stats, set_aside
from labeling.quality.resolve import resolve_traces
from people.models import Membership
from tests import factories
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def rater(cast: Personas) -> Rater:
    return Rater.objects.get(project=cast.project, user=cast.annotator)


@pytest.fixture
def trace(cast: Personas, rater: Rater) -> Trace:
    """A trace that the annotator and another rater have settled."""
    trace = factories.make_trace(cast.project)
    queue.enqueue(project_id=cast.project.pk, arm="uniform", trace_ids=[trace.pk], slots=2, now=NOW)
    QueueEntry.objects.update(slots_left=0)
    for each in (rater, factories.make_rater(cast.project)):
        submitted_work.submit_trace(each, trace, [1, -1])
    resolve_traces(project_id=cast.project.pk, trace_ids=[trace.pk], now=NOW)
    return trace


def run_jobs() -> None:
    handlers = {set_aside.KIND: set_aside.chunks, overlap_change.KIND: overlap_change.chunks}
    for job in Job.objects.filter(state="queued", kind__in=handlers).order_by("pk"):
        assert runner.run_job(job.pk, handlers[job.kind]) == "done"


@pytest.mark.fault
def test_preview_changes_nothing_and_a_confirmed_set_aside_can_be_undone(
    client: Client, cast: Personas, rater: Rater, trace: Trace
) -> None:
    address = reverse("dashboard:set_labels_aside", args=[cast.project.slug, rater.pk])
    page = client.post(address, {"scope": "all", "reason": "Clicks."})
    impact = page.context["impact"]
    assert (impact.n_labels, impact.n_reopened, impact.n_missing) == (1, 1, 1)
    assert not SetAside.objects.exists()
    data = {"scope": "all", "reason": "Clicks.", "until": page.context["until"], "confirmed": "yes"}
    shown = client.post(address, data, follow=True)
    made = SetAside.objects.get()
    assert (made.rater, made.made_by, made.reason) == (rater, cast.lead, "Clicks.")
    assert f'data-set-aside="{made.pk}" data-running="yes"' in shown.content.decode()
    run_jobs()
    assert Settlement.objects.get().state == "asked"
    for name, key in (("annotator", rater.pk), ("trace", trace.pk), ("submission", rater.assignments.get().pk)):
        page = client.get(reverse(f"dashboard:{name}", args=[cast.project.slug, key]))
        assert "data-set-aside-label" in page.content.decode()
    annotator = reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])
    assert client.get(annotator).context["has_labels_aside"]
    assert client.post(address, {"scope": "all", "reason": "Again."}).status_code == 422
    client.post(reverse("dashboard:undo_set_aside", args=[cast.project.slug, made.pk]))
    run_jobs()
    assert Settlement.objects.get().state == "settled"
    assert not Assignment.objects.filter(set_aside__isnull=False).exists()
    assert not client.get(annotator).context["has_labels_aside"]


@pytest.mark.fault
def test_one_submission_a_date_and_a_session_can_be_set_aside(
    client: Client, cast: Personas, rater: Rater, trace: Trace
) -> None:
    address = reverse("dashboard:set_labels_aside", args=[cast.project.slug, rater.pk])
    one = rater.assignments.get()
    assert client.get(address, {"assignment": one.pk}).context["form"].initial["assignment"] == one.pk
    elsewhere = factories.make_submitted(factories.make_rater(cast.project), factories.make_trace(cast.project))
    assert client.get(address, {"assignment": elsewhere.pk}).status_code == 404
    session = client.get(address).context["form"].fields["session"].choices[0][0]
    scopes: list[dict[str, object]] = [
        {"scope": "one", "assignment": one.pk},
        {"scope": "since", "since": "2026-11-01"},
        {"scope": "session", "session": session},
    ]
    for scope in scopes:
        page = client.post(address, {**scope, "reason": "x"})
        assert page.context["impact"].n_labels == 1, scope
    for bad in ({"scope": "since"}, {"scope": "session"}, {"scope": "all", "reason": ""}, {"scope": "two"}):
        assert client.post(address, {"reason": "x", **bad}).status_code == 422, bad


@pytest.mark.fault
def test_removed_member_keeps_page_and_pay_and_can_be_restored(
    client: Client, cast: Personas, rater: Rater, trace: Trace
) -> None:
    cast.project.pay_per_hour = 20
    cast.project.save()
    project_stats.compute_project_stats(project_id=cast.project.pk, now=NOW)
    member = cast.membership(cast.annotator)
    actor = cast.membership(cast.lead)
    before = {each.rater.pk: each.cost for each in load_annotators(actor, NOW).people}
    address = reverse("dashboard:remove_member", args=[cast.project.slug, member.pk])
    assert client.get(address).status_code == 200
    assert Membership.objects.get(pk=member.pk).left_at is None
    client.post(address)
    rater.refresh_from_db()
    assert rater.removed_at is not None
    assert {each.rater.pk: each.cost for each in load_annotators(actor, NOW).people} == before
    page = client.get(reverse("dashboard:annotator", args=[cast.project.slug, rater.pk]))
    assert "data-removed" in page.content.decode()
    assert page.context["submissions"]
    members_page = client.get(reverse("dashboard:members", args=[cast.project.slug]))
    assert f'data-removed="{member.pk}"' in members_page.content.decode()
    client.post(reverse("dashboard:restore_member", args=[cast.project.slug, member.pk]))
    assert Membership.objects.active().filter(pk=member.pk).exists()
    assert Rater.objects.active().filter(pk=rater.pk).exists()
    assert Event.objects.filter(what="member.restored", by=cast.lead.pk).exists()


def test_member_who_left_is_not_restored(client: Client, cast: Personas) -> None:
    member = cast.membership(cast.annotator)
    client.force_login(cast.annotator)
    client.post(reverse("dashboard:leave_project", args=[cast.project.slug]))
    client.force_login(cast.lead)
    address = reverse("dashboard:restore_member", args=[cast.project.slug, member.pk])
    assert client.post(address).status_code == 403
    assert Membership.objects.get(pk=member.pk).left_at is not None


def test_settled_trace_can_be_reopened_and_labeled_again(client: Client, cast: Personas, trace: Trace) -> None:
    page = reverse("dashboard:trace", args=[cast.project.slug, trace.pk])
    assert client.get(page).context["trace_state"].is_resolved
    client.post(reverse("dashboard:reopen_trace", args=[cast.project.slug, trace.pk]))
    row = Settlement.objects.get()
    assert (row.state, row.reason, row.consensus_revision) == ("contested", "reopened", 0)
    assert client.get(page).context["trace_state"].consensus is None
    Settlement.objects.update(is_due=True)
    resolve_traces(project_id=cast.project.pk, trace_ids=[trace.pk], now=NOW)
    assert Settlement.objects.get().reason == "reopened"
    assert client.post(reverse("dashboard:reopen_trace", args=[cast.project.slug, trace.pk])).status_code == 422
    client.post(reverse("dashboard:request_trace_label", args=[cast.project.slug, trace.pk]))
    assert Settlement.objects.get().reason == "sent_back"
    other = factories.make_rater(cast.project)
    submitted_work.submit_trace(other, trace, [1, -1], population="opinion")
    resolve_traces(project_id=cast.project.pk, trace_ids=[trace.pk], now=NOW)
    assert (Settlement.objects.get().state, Settlement.objects.get().n_votes) == ("settled", 3)


def test_higher_overlap_can_include_settled_traces(client: Client, cast: Personas, trace: Trace) -> None:
    address = reverse("dashboard:edit_overlap", args=[cast.project.slug])
    change = {"overlap": 3, "overlap_limit": 5, "lease_minutes": 30}
    page = client.post(address, {**change, "includes_settled": "on"})
    assert (page.context["settled"].n_traces, page.context["settled"].n_labels) == (1, 1)
    assert 'data-settled="1" data-labels="1"' in page.content.decode()
    client.post(address, {**change, "includes_settled": "on", "confirmed": "yes"})
    run_jobs()
    resolve_traces(project_id=cast.project.pk, trace_ids=[trace.pk], now=NOW)
    assert (Settlement.objects.get().state, QueueEntry.objects.get().slots_left) == ("reading", 1)
    submitted_work.submit_trace(factories.make_rater(cast.project), trace, [1, -1])
    resolve_traces(project_id=cast.project.pk, trace_ids=[trace.pk], now=NOW)
    assert Settlement.objects.get().state == "settled"
