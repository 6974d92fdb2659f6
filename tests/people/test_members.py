"""Joining, changing roles and leaving."""

import datetime as dt
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db.models import Sum

from accounts import tokens
from accounts.models import LinkPurpose, User
from events.models import Event
from labeling import queue
from labeling.models import Assignment, QueueEntry, Rater
from labeling.models.assignment import AssignmentState
from people import members, roles
from people.models import Membership, Role
from tests import factories
from tests.concurrency import run_at_once
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def whats() -> list[str]:
    return list(Event.objects.order_by("id").values_list("what", flat=True))


def test_only_annotators_become_raters_on_joining(cast: Personas) -> None:
    assert list(Rater.objects.values_list("user__username", flat=True)) == ["annotator"]


def test_loaded_membership_is_that_of_the_database(cast: Personas) -> None:
    cast.project.rating_rules, cast.project.pay_per_hour = {"kinds": []}, Decimal("12.50")
    cast.project.save()
    loaded = members.load_membership(user=cast.lead, slug=cast.project.slug)
    stored = Membership.objects.select_related("project").get(user=cast.lead, project=cast.project)
    assert loaded is not None
    for row, other in ((loaded, stored), (loaded.project, stored.project)):
        assert {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields} == {
            f.attname: getattr(other, f.attname) for f in other._meta.concrete_fields
        }
    assert members.load_membership(user=cast.neighbour, slug=cast.project.slug) is None
    Membership.objects.filter(pk=stored.pk).update(left_at=factories.NOW)
    assert members.load_membership(user=cast.lead, slug=cast.project.slug) is None


def test_rejoining_restores_the_rater(cast: Personas, now: dt.datetime) -> None:
    before = Rater.objects.get()
    members.remove_member(membership=cast.membership(cast.annotator), by=cast.lead, now=now)
    members.add_member(project=cast.project, user=cast.annotator, role=Role.ANNOTATOR, now=now)
    after = Rater.objects.get()
    assert (after.pk, after.labeler, after.removed_at) == (before.pk, before.labeler, None)


def test_change_role_adds_and_removes_the_rater(cast: Personas, now: dt.datetime) -> None:
    members.change_role(membership=cast.membership(cast.engineer), role=Role.ANNOTATOR, by=cast.lead, now=now)
    assert Rater.objects.get(user=cast.engineer).removed_at is None
    members.change_role(membership=cast.membership(cast.engineer), role=Role.ENGINEER, by=cast.lead, now=now)
    assert Rater.objects.get(user=cast.engineer).removed_at == now
    assert whats()[-2:] == ["member.role_changed"] * 2
    assert Event.objects.order_by("id").last().detail == {"before": "annotator", "after": "engineer"}  # type: ignore[union-attr]  # there is one


@pytest.mark.parametrize(
    ("actor", "target", "role"),
    [
        ("lead", "owner", Role.ANNOTATOR),  # cannot change higher roles
        ("lead", "lead", Role.OWNER),  # nor promote themselves
        ("reviewer", "annotator", Role.ENGINEER),
        ("annotator", "annotator", Role.OWNER),
    ],
)
def test_change_role_refuses_higher_roles(
    cast: Personas, now: dt.datetime, actor: str, target: str, role: Role
) -> None:
    membership = cast.membership(getattr(cast, target))
    with pytest.raises(roles.NotAllowed):
        members.change_role(membership=membership, role=role, by=getattr(cast, actor), now=now)
    membership.refresh_from_db()
    assert membership.role == target


@pytest.mark.parametrize("actor", ["neighbour", "stranger"])
def test_change_role_refuses_non_members(cast: Personas, now: dt.datetime, actor: str) -> None:
    with pytest.raises(members.NotAMember):
        members.change_role(
            membership=cast.membership(cast.annotator), role=Role.LEAD, by=getattr(cast, actor), now=now
        )


def test_leave_keeps_the_row_and_ends_assignments(cast: Personas, now: dt.datetime) -> None:
    membership = cast.membership(cast.annotator)
    members.leave_project(membership=membership, now=now)
    membership.refresh_from_db()
    assert membership.left_at == now
    assert Rater.objects.get().removed_at == now
    assert whats()[-1] == "member.left"


@pytest.mark.parametrize("how", ["removed", "left", "engineer"])
def test_leaving_returns_prefetched_traces(how: str, cast: Personas, now: dt.datetime) -> None:
    rater, trace = Rater.objects.get(), factories.make_trace(cast.project)
    factories.make_entry(factories.make_lane(cast.project), trace, slots=1)
    held = queue.claim_trace(rater_id=rater.pk, now=now)
    opened = factories.make_assignment(rater, factories.make_trace(cast.project))
    membership = cast.membership(cast.annotator)
    if how == "removed":
        members.remove_member(membership=membership, by=cast.lead, now=now)
    elif how == "left":
        members.leave_project(membership=membership, now=now)
    else:
        members.change_role(membership=membership, role=Role.ENGINEER, by=cast.lead, now=now)
    assert Assignment.objects.get(pk=held.assignment_id).state == AssignmentState.RELEASED
    assert QueueEntry.objects.filter(trace=trace).aggregate(left=Sum("slots_left"))["left"] == 1
    assert Assignment.objects.get(pk=opened.pk).state == AssignmentState.OPENED  # can still be finished


def test_leave_keeps_the_last_owner(cast: Personas, now: dt.datetime) -> None:
    with pytest.raises(members.LastOwner):
        members.leave_project(membership=cast.membership(cast.owner), now=now)
    members.change_role(membership=cast.membership(cast.lead), role=Role.OWNER, by=cast.owner, now=now)
    members.leave_project(membership=cast.membership(cast.owner), now=now)
    with pytest.raises(members.LastOwner):
        members.change_role(membership=cast.membership(cast.lead), role=Role.LEAD, by=cast.lead, now=now)


@pytest.mark.usefixtures("real_connections")
def test_concurrent_leaving_keeps_one_owner(now: dt.datetime) -> None:
    cast = make_personas()
    members.change_role(membership=cast.membership(cast.lead), role=Role.OWNER, by=cast.owner, now=now)
    going = [cast.membership(user) for user in (cast.owner, cast.lead)]
    answers = run_at_once(*[partial(members.leave_project, membership=membership, now=now) for membership in going])
    assert sorted(type(answer).__name__ for answer in answers) == ["LastOwner", "NoneType"]


@pytest.mark.parametrize("gone", ["annotator", "lead"])
def test_change_to_a_removed_member_is_refused(gone: str, cast: Personas, now: dt.datetime) -> None:
    """Django answers with 403."""
    seen, other = cast.membership(cast.annotator), cast.membership(getattr(cast, gone))
    members.remove_member(membership=other, by=cast.owner, now=now)
    calls: list[partial[Any]] = [
        partial(members.remove_member, membership=seen),
        partial(members.change_role, membership=seen, role=Role.ENGINEER),
    ]
    for call in calls:
        with pytest.raises(members.NotAMember) as refused:
            call(by=cast.lead, now=now)
        assert isinstance(refused.value, PermissionDenied)


def test_remove_needs_the_right_to_grant_the_role(cast: Personas, now: dt.datetime) -> None:
    with pytest.raises(roles.NotAllowed):
        members.remove_member(membership=cast.membership(cast.owner), by=cast.lead, now=now)
    with pytest.raises(roles.NotAllowed):
        members.remove_member(membership=cast.membership(cast.annotator), by=cast.reviewer, now=now)


def test_reset_link_sets_a_password(cast: Personas, now: dt.datetime) -> None:
    token = members.create_reset_link(membership=cast.membership(cast.annotator), by=cast.lead, now=now)
    link = tokens.find_link(token=token, purpose=LinkPurpose.NEW_PASSWORD, now=now)
    assert link
    assert (link.user, link.made_by) == (cast.annotator, cast.lead)
    assert whats()[-1] == "member.reset_link_made"


def test_reset_link_needs_all_projects_of_the_member(cast: Personas, now: dt.datetime) -> None:
    """The owner of another project is an annotator here; this lead must not get access to their account."""
    membership = members.add_member(project=cast.project, user=cast.neighbour, role=Role.ANNOTATOR, now=now)
    with pytest.raises(roles.NotAllowed):
        members.create_reset_link(membership=membership, by=cast.lead, now=now)


@pytest.mark.parametrize("target", ["owner", "lead"])
def test_leads_cannot_reset_leads_and_owners(cast: Personas, now: dt.datetime, target: str) -> None:
    with pytest.raises(roles.NotAllowed):
        members.create_reset_link(membership=cast.membership(getattr(cast, target)), by=cast.lead, now=now)


def test_reset_link_refuses_operator_accounts(cast: Personas, now: dt.datetime) -> None:
    User.objects.filter(pk=cast.annotator.pk).update(is_staff=True)
    with pytest.raises(roles.NotAllowed):
        members.create_reset_link(membership=cast.membership(cast.annotator), by=cast.owner, now=now)


def test_end_memberships_ends_all_and_keeps_the_last_owner(cast: Personas, now: dt.datetime) -> None:
    members.end_memberships(user=cast.annotator, by=None, now=now)
    assert Membership.objects.get(user=cast.annotator).left_at == now
    assert Rater.objects.get().removed_at == now
    assert whats()[-1] == "member.left"
    with pytest.raises(members.LastOwner):
        members.end_memberships(user=cast.owner, by=None, now=now)


def test_creator_becomes_owner(now: dt.datetime) -> None:
    anna = factories.make_user()
    project = members.create_owned_project(name="Sums", slug="sums", by=anna, now=now, overlap=3, overlap_limit=4)
    assert members.get_membership(project=project, user=anna).role == Role.OWNER
    assert project.overlap == 3
    assert whats() == ["project.created"]
