"""Navigation of a project's pages, in order. A package that adds a page adds its item here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from people import roles
from people.models import Membership
from people.roles import Action


@dataclass(frozen=True)
class NavigationItem:
    """One link. A page names its item by `key`; `url` takes only the project's slug."""

    key: str
    label: Any  # a lazy translation
    url: str
    action: Action


@dataclass(frozen=True)
class NavigationGroup:
    label: Any
    items: tuple[NavigationItem, ...]


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
    """List the groups with the pages that this member's role may open."""
    for group in NAVIGATION:
        items = tuple(item for item in group.items if roles.membership_may(membership, item.action))
        if items:
            yield NavigationGroup(group.label, items)
