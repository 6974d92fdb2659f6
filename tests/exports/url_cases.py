"""The URLs of snapshots for `tests.test_permissions`: the method, the status for each role, and the arguments."""

from collections.abc import Callable
from typing import Any

from exports import snapshots
from exports.orders import SnapshotOrder
from tests import factories
from tests.people.personas import Personas

Arguments = Callable[[Personas], dict[str, object]]


def answers_for_engineers(status: int) -> dict[str, int]:
    inside = {"annotator": 403, "viewer": 403, "reviewer": 403, "engineer": status, "lead": status, "owner": status}
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **inside}


def project_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug}


def snapshot_args(cast: Personas) -> dict[str, object]:
    snapshot = snapshots.order_snapshot(
        project=cast.project,
        name="one",
        purpose="archive",
        order=SnapshotOrder(formats=["trl"]),
        by=None,
        now=factories.NOW,
    )
    return {"slug": cast.project.slug, "name": snapshot.name}


def snapshot_file_args(cast: Personas) -> dict[str, object]:
    return {**snapshot_args(cast), "file": "README.md"}


SNAPSHOT_URL_CASES: dict[str, tuple[Any, ...]] = {
    "dashboard:snapshots": ("get", answers_for_engineers(200), project_args),
    "dashboard:order_snapshot": ("post", answers_for_engineers(422), project_args, {"name": "x"}),
    "dashboard:disclosure": ("get", answers_for_engineers(200), project_args),
    "dashboard:snapshot": ("get", answers_for_engineers(200), snapshot_args),
    "dashboard:snapshot_progress": ("get", answers_for_engineers(200), snapshot_args),
    "dashboard:cancel_snapshot": ("post", answers_for_engineers(302), snapshot_args),
    "dashboard:retry_snapshot": ("post", answers_for_engineers(302), snapshot_args),
    "dashboard:deliver_snapshot": ("post", answers_for_engineers(404), snapshot_args),
    "dashboard:download_snapshot_file": ("get", answers_for_engineers(404), snapshot_file_args),
}
