"""Invitations."""

import datetime as dt
from functools import partial

import pytest

from accounts import tokens
from accounts.models import User
from events.models import Event
from labeling.models import Rater
from people import invitations, members, roles
from people.models import Invitation, Membership, Role
from tests import factories
from tests.concurrency import run_at_once
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def test_accept_creates_a_member_and_a_rater(cast: Personas, now: dt.datetime) -> None:
    _, token = invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=now)
    membership = invitations.accept_invitation(token=token, user=cast.stranger, now=now)
    assert (membership.role, membership.joined_at) == (Role.ANNOTATOR, now)
    assert Rater.objects.filter(user=cast.stranger, removed_at=None).exists()
    assert list(Event.objects.order_by("-id").values_list("what", "by")[:2]) == [
        ("invitation.accepted", cast.stranger.pk),
        ("invitation.made", cast.lead.pk),
    ]


def test_only_the_hash_of_an_invitation_is_stored(cast: Personas, now: dt.datetime) -> None:
    invitation, token = invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=now)
    assert Invitation.objects.get().token_digest == tokens.hash_token(token)
    assert token not in {str(value) for value in vars(invitation).values()}
    assert token not in str(Event.objects.order_by("id").last().detail)  # type: ignore[union-attr]  # there is one


@pytest.mark.parametrize(
    ("actor", "role"),
    [
        ("owner", Role.OWNER),
        ("lead", Role.OWNER),
        ("reviewer", Role.ANNOTATOR),
        ("engineer", Role.ANNOTATOR),
        ("annotator", Role.ANNOTATOR),
    ],
)
def test_invite_refuses_higher_roles(cast: Personas, now: dt.datetime, actor: str, role: Role) -> None:
    with pytest.raises(roles.NotAllowed):
        invitations.create_invitation(project=cast.project, role=role, by=getattr(cast, actor), now=now)


def test_invite_refuses_non_members(cast: Personas, now: dt.datetime) -> None:
    with pytest.raises(members.NotAMember):
        invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=cast.neighbour, now=now)


def test_accept_refuses_invalid_invitations(cast: Personas, now: dt.datetime) -> None:
    old, revoked, spent = (
        invitations.create_invitation(project=cast.project, role=Role.ENGINEER, by=cast.owner, now=now, days=2)
        for _ in range(3)
    )
    invitations.revoke_invitation(invitation=revoked[0], by=cast.lead, now=now)
    invitations.accept_invitation(token=spent[1], user=factories.make_user(), now=now)
    for token, later in ((old[1], 2), (revoked[1], 0), (spent[1], 0), ("never one", 0)):
        with pytest.raises(invitations.InvitationInvalid):
            invitations.accept_invitation(token=token, user=cast.stranger, now=now + dt.timedelta(days=later))


def test_accept_with_new_account_creates_both_or_neither(cast: Personas, now: dt.datetime) -> None:
    _, token = invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=now)
    membership = invitations.accept_with_new_account(
        token=token, username="ines", password="seven green ladders", now=now
    )
    assert membership.user.check_password("seven green ladders")
    with pytest.raises(invitations.InvitationInvalid):
        invitations.accept_with_new_account(token=token, username="late", password="seven green ladders", now=now)
    assert not User.objects.filter(username="late").exists()


def test_accept_does_not_change_a_member(cast: Personas, now: dt.datetime) -> None:
    _, token = invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=now)
    assert invitations.accept_invitation(token=token, user=cast.owner, now=now).role == Role.OWNER
    assert Invitation.objects.get().uses == 0


def test_accept_readmits_a_former_member(cast: Personas, now: dt.datetime) -> None:
    members.leave_project(membership=cast.membership(cast.lead), now=now)
    _, token = invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=cast.owner, now=now)
    membership = invitations.accept_invitation(token=token, user=cast.lead, now=now)
    assert (membership.role, membership.left_at) == (Role.ANNOTATOR, None)
    assert Membership.objects.filter(project=cast.project, user=cast.lead).count() == 1


def test_accept_refuses_former_members_with_an_older_invitation(cast: Personas, now: dt.datetime) -> None:
    _, token = invitations.create_invitation(
        project=cast.project, role=Role.ANNOTATOR, uses_allowed=9, by=cast.lead, now=now
    )
    later = now + dt.timedelta(hours=1)
    members.remove_member(membership=cast.membership(cast.annotator), by=cast.lead, now=later)
    with pytest.raises(invitations.InvitationInvalid):
        invitations.accept_invitation(token=token, user=cast.annotator, now=later)
    assert invitations.accept_invitation(token=token, user=cast.stranger, now=later).role == Role.ANNOTATOR
    assert Invitation.objects.get().uses == 1


def test_revoke_needs_the_right_to_invite(cast: Personas, now: dt.datetime) -> None:
    invitation, _ = invitations.create_invitation(project=cast.project, role=Role.LEAD, by=cast.owner, now=now)
    with pytest.raises(roles.NotAllowed):
        invitations.revoke_invitation(invitation=invitation, by=cast.lead, now=now)
    own, _ = invitations.create_invitation(project=cast.project, role=Role.LEAD, by=cast.lead, now=now)
    invitations.revoke_invitation(invitation=own, by=cast.lead, now=now)


@pytest.mark.usefixtures("real_connections")
def test_concurrent_accepts_respect_the_use_limit(now: dt.datetime) -> None:
    cast = make_personas()
    _, token = invitations.create_invitation(
        project=cast.project, role=Role.ANNOTATOR, uses_allowed=2, by=cast.lead, now=now
    )
    people = [factories.make_user() for _ in range(6)]
    answers = run_at_once(
        *[partial(invitations.accept_invitation, token=token, user=person, now=now) for person in people]
    )
    assert sum(isinstance(answer, Membership) for answer in answers) == 2
    assert sum(isinstance(answer, invitations.InvitationInvalid) for answer in answers) == 4
    assert Membership.objects.filter(project=cast.project, user__in=people).count() == 2


@pytest.mark.usefixtures("real_connections")
def test_concurrent_accepts_of_one_user_count_once(now: dt.datetime) -> None:
    cast = make_personas()
    _, token = invitations.create_invitation(
        project=cast.project, role=Role.ANNOTATOR, uses_allowed=9, by=cast.lead, now=now
    )
    answers = run_at_once(*[partial(invitations.accept_invitation, token=token, user=cast.stranger, now=now)] * 4)
    assert {type(answer).__name__ for answer in answers} == {"Membership"}
    assert Invitation.objects.get().uses == 1
    assert Rater.objects.filter(user=cast.stranger).count() == 1


def test_invitation_of_a_removed_inviter_is_invalid(cast: Personas, now: dt.datetime) -> None:
    """Otherwise they could return with an old link and a new account."""
    lead = cast.membership(cast.lead)
    _, token = invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=lead.user, now=now)
    assert invitations.find_invitation(token=token, now=now) is not None
    members.remove_member(membership=lead, by=cast.owner, now=now)
    assert invitations.find_invitation(token=token, now=now) is None
    with pytest.raises(invitations.InvitationInvalid):
        invitations.accept_invitation(token=token, user=factories.make_user(), now=now)


def test_invitation_of_a_demoted_inviter_is_invalid(cast: Personas, now: dt.datetime) -> None:
    """Otherwise they could regain the role with an old link and a new account."""
    lead = cast.membership(cast.lead)
    _, token = invitations.create_invitation(project=cast.project, role=Role.REVIEWER, by=lead.user, now=now)
    members.change_role(membership=lead, role=Role.ENGINEER, by=cast.owner, now=now)
    assert invitations.find_invitation(token=token, now=now) is None
    assert not invitations.open_invitations(now=now).exists()
    with pytest.raises(invitations.InvitationInvalid):
        invitations.accept_invitation(token=token, user=cast.stranger, now=now)


def test_invitation_grants_what_its_maker_may_still_grant(cast: Personas, now: dt.datetime) -> None:
    tokens_of = {
        role: invitations.create_invitation(project=cast.project, role=role, by=cast.owner, now=now)[1]
        for role in (Role.LEAD, Role.ANNOTATOR)
    }
    Membership.objects.filter(user=cast.owner).update(role=Role.REVIEWER)
    assert invitations.find_invitation(token=tokens_of[Role.LEAD], now=now) is None
    Membership.objects.filter(user=cast.owner).update(role=Role.LEAD)
    for role, user in ((Role.LEAD, cast.stranger), (Role.ANNOTATOR, cast.neighbour)):
        assert invitations.accept_invitation(token=tokens_of[role], user=user, now=now).role == role
