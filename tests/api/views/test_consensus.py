"""The consensus of all raters, and of chosen ones."""

from typing import Any

import pytest
from django.urls import reverse

from labeling.models import Rater
from people import members
from people.models import Role
from tests import factories
from tests.api import api_clients
from tests.labeling.quality import submitted_work
from tests.labeling.quality.test_chosen_raters import make_traces

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> list[Rater]:
    project = factories.make_project(overlap=3)
    return submitted_work.make_raters(project, 4)


@pytest.mark.fault
def test_consensus_is_listed_for_all_or_chosen_raters_in_pages(people: list[Rater]) -> None:
    outvoted, _tied, decisive, decided, other = (trace.pk for trace in make_traces(people))
    project, bad = people[0].project, people[0].labeler
    viewer = factories.make_user("viewer")
    members.add_member(project=project, user=viewer, role=Role.VIEWER, now=factories.NOW)
    program, address = api_clients.make_client(viewer), reverse("api:consensus", args=[project.slug])

    def load(**query: Any) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        cursor = 0
        while cursor is not None:
            page = program.get(address, {"limit": 2, "cursor": cursor, **query}).json()
            assert len(page["traces"]) <= 2
            found |= {row["trace"]: row for row in page["traces"]}
            cursor = page["next_cursor"]
        return found

    everybody = load()
    assert list(everybody) == [outvoted, decisive, decided, other]
    assert [row["first_error"] for row in everybody.values()] == [1, 1, 2, 1]
    assert {row["is_inferred"] for row in everybody.values()} == {False}
    without = load(without=bad)
    assert {trace: row["is_determined"] for trace, row in without.items()} == {
        outvoted: True,
        decisive: False,
        decided: True,
        other: True,
    }
    assert {trace for trace, row in without.items() if row["is_inferred"]} == {outvoted, decisive, decided}
    assert (without[outvoted]["n_votes"], everybody[outvoted]["n_votes"]) == (2, 3)
    assert [(row["step"], row["rating"]) for row in without[outvoted]["labels"]] == [(0, 1), (1, -1)]
    assert without[decisive]["labels"] is None
    assert load(only=[people[1].labeler, people[2].labeler])[outvoted]["n_votes"] == 2
    assert program.get(address, {"without": "nobody"}).status_code == 422
    assert program.get(address, {"whithout": "nobody"}).status_code == 422
