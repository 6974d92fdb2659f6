"""The addresses of snapshots, for the walk of `tests.test_permissions`: how each is asked, and by whom."""

from collections.abc import Callable
from typing import Any

from exports import snapshots
from exports.orders import Order
from tests import factories
from tests.people.cast import Cast

Arguments = Callable[[Cast], dict[str, object]]


def engineers(status: int) -> dict[str, int]:
    """Those who take data out."""
    inside = {"annotator": 403, "reviewer": 403, "engineer": status, "lead": status, "owner": status}
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **inside}


def in_project(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug}


def of_snapshot(cast: Cast) -> dict[str, object]:
    made = snapshots.order(
        project=cast.project,
        name="one",
        purpose="archive",
        wanted=Order(formats=["trl"]),
        by=None,
        now=factories.NOW,
    )
    return {"slug": cast.project.slug, "name": made.name}


def of_file(cast: Cast) -> dict[str, object]:
    return {**of_snapshot(cast), "file": "README.md"}


DOORS: dict[str, tuple[Any, ...]] = {
    "dashboard:snapshots": ("get", engineers(200), in_project),
    "dashboard:order_snapshot": ("post", engineers(422), in_project, {"name": "x"}),
    "dashboard:statement": ("get", engineers(200), in_project),
    "dashboard:snapshot": ("get", engineers(200), of_snapshot),
    "dashboard:snapshot_standing": ("get", engineers(200), of_snapshot),
    "dashboard:cancel_snapshot": ("post", engineers(302), of_snapshot),
    "dashboard:retry_snapshot": ("post", engineers(302), of_snapshot),
    "dashboard:deliver_snapshot": ("post", engineers(404), of_snapshot),
    "dashboard:snapshot_file": ("get", engineers(404), of_file),
}
