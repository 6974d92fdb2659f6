"""Where one can go in a project, in the order of the side. A room that has a page adds its line here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from people import roles
from people.models import Membership
from people.roles import Action


@dataclass(frozen=True)
class NavigationItem:
    """One line of the side. `key` is what a page calls itself; `url` takes the project's slug alone."""

    key: str
    label: Any  # translated when it is read
    url: str
    action: Action


@dataclass(frozen=True)
class NavigationGroup:
    label: Any
    places: tuple[NavigationItem, ...]


NAVIGATION = (
    NavigationGroup(
        _("Project"),
        (
            NavigationItem("overview", _("Overview"), "dashboard:overview", Action.READ),
            NavigationItem("traces", _("Traces"), "dashboard:traces", Action.READ),
            NavigationItem("agreement", _("Agreement"), "dashboard:agreement", Action.READ),
            NavigationItem("adjudication", _("Adjudication"), "dashboard:adjudication", Action.ADJUDICATE),
            NavigationItem("gold", _("Gold"), "dashboard:gold", Action.MAKE_GOLD),
        ),
    ),
    NavigationGroup(
        _("People"),
        (
            NavigationItem("annotators", _("Annotators"), "dashboard:annotators", Action.PAUSE),
            NavigationItem("messages", _("Messages"), "dashboard:messages", Action.WRITE),
            NavigationItem("members", _("Members"), "dashboard:members", Action.INVITE),
        ),
    ),
    NavigationGroup(
        _("Data and models"),
        (
            NavigationItem("imports", _("Imports"), "dashboard:imports", Action.BRING_IN),
            NavigationItem("generations", _("Generations"), "dashboard:generations", Action.READ),
            NavigationItem("snapshots", _("Snapshots"), "dashboard:snapshots", Action.TAKE_OUT),
        ),
    ),
    NavigationGroup(
        "",
        (
            NavigationItem("settings", _("Settings"), "dashboard:settings", Action.GUIDE),
            NavigationItem("jobs", _("Jobs"), "dashboard:jobs", Action.READ),
        ),
    ),
)


def list_visible_groups(membership: Membership) -> Iterator[NavigationGroup]:
    """The side as this member sees it: what their role does not open is not offered."""
    for group in NAVIGATION:
        open_ones = tuple(place for place in group.places if roles.membership_may(membership, place.action))
        if open_ones:
            yield NavigationGroup(group.label, open_ones)


def find_landing_item(membership: Membership) -> NavigationItem | None:
    """Where somebody who opens the project comes in; None for those who only rate in it."""
    return next((place for group in list_visible_groups(membership) for place in group.places), None)
