"""The table of roles and actions."""

import datetime as dt

import pytest

from labeling.models import Project
from people import members, roles
from people.models import Membership, Role
from people.roles import Action
from tests import factories

pytestmark = pytest.mark.django_db


def test_every_action_has_a_role() -> None:
    assert all(Role.OWNER in roles.roles_allowed_to(action) for action in Action)


@pytest.mark.parametrize(
    ("action", "allowed"),
    [
        (Action.RATE, {Role.OWNER, Role.LEAD, Role.REVIEWER, Role.ANNOTATOR}),
        (Action.READ, {Role.OWNER, Role.LEAD, Role.REVIEWER, Role.ENGINEER, Role.VIEWER}),
        (Action.TAKE_OUT, {Role.OWNER, Role.LEAD, Role.ENGINEER}),
        (Action.INVITE, {Role.OWNER, Role.LEAD}),
        (Action.CLOSE, {Role.OWNER}),
    ],
)
def test_roles_allowed_to_follows_the_table(action: Action, allowed: set[Role]) -> None:
    assert roles.roles_allowed_to(action) == allowed


@pytest.mark.parametrize("role", Role)
def test_user_may_follows_the_membership(role: Role, now: dt.datetime) -> None:
    project, user = factories.make_project(), factories.make_user()
    members.add_member(project=project, user=user, role=role, now=now)
    for action in Action:
        assert roles.user_may(user, action, project) is (action in roles.ROLE_ACTIONS[role])
        assert not roles.user_may(user, action, factories.make_project())


def test_former_members_may_do_nothing(now: dt.datetime) -> None:
    project, user = factories.make_project(), factories.make_user()
    membership = members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=now)
    members.leave_project(membership=membership, now=now)
    assert not roles.user_may(user, Action.RATE, project)
    membership.refresh_from_db()
    assert not roles.membership_may(membership, Action.RATE)


def test_visible_projects_are_those_of_the_user(now: dt.datetime) -> None:
    user = factories.make_user()
    there = {role: factories.make_project() for role in Role}
    for role, project in there.items():
        members.add_member(project=project, user=user, role=role, now=now)
    factories.make_project()
    members.add_member(project=factories.make_project(), user=factories.make_user(), role=Role.OWNER, now=now)
    assert set(roles.visible_projects(user)) == set(there.values())
    assert set(roles.visible_projects(user, Action.INVITE)) == {there[Role.OWNER], there[Role.LEAD]}


def test_refusal_names_the_project_and_the_roles_that_may(now: dt.datetime) -> None:
    project = factories.make_project(name="Sums")
    membership = members.add_member(project=project, user=factories.make_user(), role=Role.ANNOTATOR, now=now)
    with pytest.raises(roles.NotAllowed) as refused:
        roles.require_action(membership, Action.INVITE)
    for name in ("Sums", str(Role.ANNOTATOR.label), f"{Role.OWNER.label}, {Role.LEAD.label}"):
        assert name in str(refused.value)
    roles.require_action(membership, Action.RATE)


@pytest.mark.parametrize(
    ("giver", "given"),
    [
        (Role.OWNER, set(Role)),
        (Role.LEAD, set(Role) - {Role.OWNER}),
        (Role.REVIEWER, set()),
        (Role.ENGINEER, set()),
        (Role.VIEWER, set()),
        (Role.ANNOTATOR, set()),
    ],
)
def test_only_owners_and_leads_grant_roles(giver: Role, given: set[Role]) -> None:
    membership = Membership(project=Project(), role=giver)
    assert {role for role in Role if roles.may_grant(membership, role)} == given


def test_leads_appoint_leads_but_do_not_manage_them() -> None:
    lead = Membership(project=Project(), role=Role.LEAD)
    assert {role for role in Role if roles.may_manage(lead, role)} == set(Role) - {Role.OWNER, Role.LEAD}
    owner = Membership(project=Project(), role=Role.OWNER)
    assert all(roles.may_manage(owner, role) for role in Role)
