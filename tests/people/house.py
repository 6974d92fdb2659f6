"""The cast, each of them logged in, for walks through many doors."""

from typing import NamedTuple

from django.conf import settings
from django.test import Client
from django.test.client import ClientHandler

from tests.people.cast import Cast, make_cast

OUTSIDE = ("visitor", "stranger", "neighbour")
INSIDE = ("annotator", "engineer", "reviewer", "lead", "owner")
# One for all walks: a client that comes with a handler of its own builds the whole row of middleware first.
_HANDLERS = {checks_forms: ClientHandler(enforce_csrf_checks=checks_forms) for checks_forms in (False, True)}


class House(NamedTuple):
    """Who walks, and what each of them holds who has logged in."""

    cast: Cast
    sessions: dict[str, str]

    def client(self, person: str, *, checks_forms: bool = False) -> Client:
        client = Client(enforce_csrf_checks=checks_forms)
        client.handler = _HANDLERS[checks_forms]
        if person in self.sessions:
            client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[person]
        return client


def make_house() -> House:
    cast, clients = make_cast(), {person: Client() for person in (*OUTSIDE, *INSIDE) if person != "visitor"}
    for person, client in clients.items():
        client.force_login(getattr(cast, person))
    sessions = {person: client.cookies[settings.SESSION_COOKIE_NAME].value for person, client in clients.items()}
    return House(cast, sessions)
