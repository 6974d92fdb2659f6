"""The people that permission tests are told with."""

from typing import NamedTuple

from accounts.models import User
from labeling.models import Project
from people import members, projects
from people.models import Membership, Role
from tests import factories


class Cast(NamedTuple):
    """A project with somebody of each role, somebody of another project, and a stranger."""

    project: Project
    owner: User
    lead: User
    reviewer: User
    engineer: User
    annotator: User
    neighbour: User  # owner of another project
    stranger: User  # logged in, member of nothing

    def membership(self, user: User) -> Membership:
        return members.find(project=self.project, user=user)


def make_cast(prefix: str = "") -> Cast:
    owner = factories.make_user(f"{prefix}owner")
    project = projects.create(name="Sums", slug=f"{prefix}sums", by=owner, now=factories.NOW)
    neighbour = factories.make_user(f"{prefix}neighbour")
    projects.create(name="Next door", slug=f"{prefix}next-door", by=neighbour, now=factories.NOW)
    others = {}
    for role in (Role.LEAD, Role.REVIEWER, Role.ENGINEER, Role.ANNOTATOR):
        others[role.value] = factories.make_user(f"{prefix}{role.value}")
        members.join(project=project, user=others[role.value], role=role, now=factories.NOW)
    return Cast(project, owner=owner, neighbour=neighbour, stranger=factories.make_user(f"{prefix}stranger"), **others)
