"""The cast, each of them logged in, for walks through many doors."""

import copy
from http.cookies import SimpleCookie
from typing import NamedTuple

from django.test import Client

from tests.people.cast import Cast, make_cast

OUTSIDE = ("visitor", "stranger", "neighbour")
INSIDE = ("annotator", "engineer", "reviewer", "lead", "owner")


class House(NamedTuple):
    """Who walks, and what each of them holds who has logged in."""

    cast: Cast
    cookies: dict[str, SimpleCookie]

    def client(self, person: str, *, checks_forms: bool = False) -> Client:
        client = Client(enforce_csrf_checks=checks_forms)
        client.cookies = copy.deepcopy(self.cookies[person])
        return client


def make_house() -> House:
    cast, clients = make_cast(), {person: Client() for person in (*OUTSIDE, *INSIDE)}
    for person in {*clients} - {"visitor"}:
        clients[person].force_login(getattr(cast, person))
    return House(cast, {person: client.cookies for person, client in clients.items()})
