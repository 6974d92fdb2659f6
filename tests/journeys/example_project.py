"""A small project with people in every role, for journeys and pictures."""

import datetime as dt
from typing import NamedTuple

from django.utils import timezone

from accounts.models import User
from labeling.models import Project
from people import invitations, members
from people.models import Role
from tests import factories


class ExampleProject(NamedTuple):
    lead: User
    annotator: User
    project: Project


def make_example_project() -> ExampleProject:
    now = timezone.now()
    lead = factories.make_user("marchetti", name="Elena Marchetti", is_staff=True)
    annotator = factories.make_user("haddad", name="Amal Haddad")
    project = members.create_owned_project(name="Competition math, round 3", slug="competition-maths", by=lead, now=now)
    agents = members.create_owned_project(
        name="Repository agents, pilot", slug="agents", by=lead, now=now, protocol="every_step"
    )
    geometry = members.create_owned_project(name="Geometry with figures", slug="geometry", by=lead, now=now)
    for where in (project, agents, geometry):
        members.add_member(project=where, user=annotator, role=Role.ANNOTATOR, now=now)
    for where, n in ((project, 12), (agents, 3)):
        lane = factories.make_lane(where)
        for _ in range(n):
            factories.make_entry(lane, factories.make_trace(where))
    _fill_project(project, lead, now)
    return ExampleProject(lead, annotator, project)


def _fill_project(project: Project, lead: User, now: dt.datetime) -> None:
    people = (
        ("brandt", "Lotte Brandt", Role.LEAD),
        ("okafor", "Maya Okafor", Role.REVIEWER),
        ("ito", "Sho Ito", Role.ENGINEER),
        ("lindqvist", "Karin Lindqvist", Role.ANNOTATOR),
        ("navarro", "Rosa Navarro", Role.ANNOTATOR),
        ("worker-5f3a91", "", Role.ANNOTATOR),
    )
    for n, (username, name, role) in enumerate(people):
        user = factories.make_user(username, name=name)
        members.add_member(project=project, user=user, role=role, now=now - dt.timedelta(days=3 * n))
    invitations.create_invitation(
        project=project, role=Role.ANNOTATOR, uses_allowed=25, by=lead, now=now, note="November group"
    )
