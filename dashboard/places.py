"""Where one can go in a project, in the order of the side. A room that has a page adds its line here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from people import roles
from people.models import Membership
from people.roles import Action


@dataclass(frozen=True)
class Place:
    """One line of the side. `key` is what a page calls itself; `url` takes the project's slug alone."""

    key: str
    label: Any  # translated when it is read
    url: str
    action: Action


@dataclass(frozen=True)
class Group:
    label: Any
    places: tuple[Place, ...]


GROUPS = (
    Group(
        _("Project"),
        (
            Place("overview", _("Overview"), "dashboard:overview", Action.READ),
            Place("traces", _("Traces"), "dashboard:traces", Action.READ),
            Place("agreement", _("Agreement"), "dashboard:agreement", Action.READ),
            Place("adjudicate", _("Adjudicate"), "dashboard:adjudicate", Action.ADJUDICATE),
            Place("gold", _("Gold"), "dashboard:gold", Action.MAKE_GOLD),
        ),
    ),
    Group(
        _("People"),
        (
            Place("annotators", _("Annotators"), "dashboard:annotators", Action.PAUSE),
            Place("messages", _("Messages"), "dashboard:messages", Action.WRITE),
            Place("people", _("Members"), "dashboard:people", Action.INVITE),
        ),
    ),
    Group(
        _("Data and models"),
        (
            Place("imports", _("Imports"), "dashboard:imports", Action.BRING_IN),
            Place("models", _("Generations"), "dashboard:models", Action.READ),
            Place("snapshots", _("Snapshots"), "dashboard:snapshots", Action.TAKE_OUT),
        ),
    ),
    Group(
        "",
        (
            Place("settings", _("Settings"), "dashboard:settings", Action.GUIDE),
            Place("jobs", _("Jobs"), "dashboard:jobs", Action.READ),
        ),
    ),
)


def of(membership: Membership) -> Iterator[Group]:
    """The side as this member sees it: what their role does not open is not offered."""
    for group in GROUPS:
        open_ones = tuple(place for place in group.places if roles.does(membership, place.action))
        if open_ones:
            yield Group(group.label, open_ones)


def first(membership: Membership) -> Place | None:
    """Where somebody who opens the project comes in; None for those who only rate in it."""
    return next((place for group in of(membership) for place in group.places), None)
