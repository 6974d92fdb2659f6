"""The users of the permission tests."""

from typing import NamedTuple

from django.conf import settings
from django.test import Client
from django.test.client import ClientHandler

from accounts.models import User
from labeling.models import Project
from people import members
from people.models import Membership, Role
from tests import factories


class Personas(NamedTuple):
    """A project with a user of each role, the owner of another project, and a stranger."""

    project: Project
    owner: User
    lead: User
    reviewer: User
    engineer: User
    viewer: User
    annotator: User
    neighbour: User  # owner of another project
    stranger: User  # logged in, member of nothing

    def membership(self, user: User) -> Membership:
        return members.get_membership(project=self.project, user=user)


def make_personas(prefix: str = "") -> Personas:
    owner = factories.make_user(f"{prefix}owner")
    project = members.create_owned_project(name="Sums", slug=f"{prefix}sums", by=owner, now=factories.NOW)
    neighbour = factories.make_user(f"{prefix}neighbour")
    members.create_owned_project(name="Next door", slug=f"{prefix}next-door", by=neighbour, now=factories.NOW)
    others = {}
    for role in (Role.LEAD, Role.REVIEWER, Role.ENGINEER, Role.VIEWER, Role.ANNOTATOR):
        others[role.value] = factories.make_user(f"{prefix}{role.value}")
        members.add_member(project=project, user=others[role.value], role=role, now=factories.NOW)
    return Personas(
        project, owner=owner, neighbour=neighbour, stranger=factories.make_user(f"{prefix}stranger"), **others
    )


# The users with their logged-in clients, for tests that visit many URLs.


OUTSIDERS = ("visitor", "stranger", "neighbour")
MEMBERS = ("annotator", "viewer", "engineer", "reviewer", "lead", "owner")
# Shared, because each new client handler would build the whole middleware chain.
_HANDLERS = {checks_forms: ClientHandler(enforce_csrf_checks=checks_forms) for checks_forms in (False, True)}


class LoggedInPersonas(NamedTuple):
    """The users, each with a logged-in client."""

    cast: Personas
    sessions: dict[str, str]

    def client(self, person: str, *, checks_forms: bool = False) -> Client:
        client = Client(enforce_csrf_checks=checks_forms)
        client.handler = _HANDLERS[checks_forms]
        if person in self.sessions:
            client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[person]
        return client


def log_in_personas() -> LoggedInPersonas:
    cast, clients = make_personas(), {person: Client() for person in (*OUTSIDERS, *MEMBERS) if person != "visitor"}
    for person, client in clients.items():
        client.force_login(getattr(cast, person))
    sessions = {person: client.cookies[settings.SESSION_COOKIE_NAME].value for person, client in clients.items()}
    return LoggedInPersonas(cast, sessions)
