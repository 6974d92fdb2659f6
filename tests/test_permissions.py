"""Every URL is walked as everybody: a visitor who is not logged in, a stranger with an account, the owner of another
project, and each role of this one. A URL without an expectation fails."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from django.db import transaction
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from people import invitations
from people.models import Membership, Role
from people.roles import RATERS
from tests import factories
from tests.arguments import (
    consenting,
    contested,
    file_of_snapshot,
    guided,
    image,
    image_in_project,
    in_hand,
    in_project,
    named_snapshot,
    of_import,
    of_job,
    of_open_assignment,
    of_program,
    of_source,
    of_trace,
    spent_token,
    submitted,
    trained,
    written,
)
from tests.dashboard import doors as of_leads
from tests.exports import doors as of_snapshots
from tests.people.cast import Cast
from tests.people.house import INSIDE, OUTSIDE, House
from tests.prm import doors as of_prms

pytestmark = pytest.mark.django_db
Arguments = Callable[[Cast], dict[str, object]]


class Door(NamedTuple):
    """What stands at a URL: how it is asked, with which arguments, and what each person is answered."""

    method: str
    answers: dict[str, int]
    arguments: Arguments = lambda cast: {}
    body: dict[str, object] | None = None


def everybody(status: int, **others: int) -> dict[str, int]:
    return {**dict.fromkeys((*OUTSIDE, *INSIDE), status), **others}


def members(status: int, **others: int) -> dict[str, int]:
    """Not visible from outside, the same inside; a visitor is sent to the login page."""
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **dict.fromkeys(INSIDE, status), **others}


def managers(status: int) -> dict[str, int]:
    return members(403, lead=status, owner=status)


def of_annotator(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug, "member": cast.membership(cast.annotator).pk}


def of_invitation(cast: Cast) -> dict[str, object]:
    made, _ = invitations.invite(project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=factories.NOW)
    return {"slug": cast.project.slug, "invitation": made.pk}


def bringers(status: int) -> dict[str, int]:
    return managers(status) | {"engineer": status}


def readers(status: int, **others: int) -> dict[str, int]:
    """Whoever may read all of the project: everybody in it but its annotators."""
    return members(status, annotator=403, **others)


def raters(status: int) -> dict[str, int]:
    """Those who rate in the project; for everybody else it has no page to rate on."""
    return everybody(404, visitor=302, **dict.fromkeys(RATERS, status))


def its_rater(status: int) -> dict[str, int]:
    """Nobody but the one whose hands it is in, not even the owner."""
    return everybody(404, visitor=302, annotator=status)


def deciders(status: int) -> dict[str, int]:
    return members(403, reviewer=status, lead=status, owner=status)


DOORS: dict[str, Door] = {
    # for machines
    "live": Door("get", everybody(200)),
    "ready": Door("get", everybody(200)),
    "metrics": Door("get", everybody(404)),
    # for programs: without a token there is nothing; tests/api walks as each role with one
    "api:schema": Door("get", everybody(200)),
    "api:projects": Door("get", everybody(401)),
    "api:project": Door("get", everybody(401), in_project),
    "api:imports": Door("post", everybody(401), in_project),
    "api:import": Door("get", everybody(401), of_job),
    "api:bad_lines": Door("get", everybody(401), of_job),
    "api:snapshots": Door("post", everybody(401), in_project),
    "api:snapshot": Door("get", everybody(401), named_snapshot),
    "api:file": Door("get", everybody(401), file_of_snapshot),
    # getting in and out
    "account_login": Door("get", everybody(302, visitor=200)),
    "account_logout": Door("get", everybody(200, visitor=302)),
    "account_inactive": Door("get", everybody(200)),
    "account_signup": Door("get", everybody(200)),
    "account_reset_password": Door("get", everybody(200)),
    "account_change_password": Door("get", everybody(200, visitor=302)),
    "tokens": Door("get", everybody(200, visitor=302)),
    "withdraw_token": Door("post", everybody(404, visitor=302, engineer=302), of_program),
    "login_link": Door("get", everybody(410), spent_token),
    "new_password": Door("get", everybody(410), spent_token),
    "theme": Door("post", everybody(302)),
    # annotators
    "annotate:home": Door("get", everybody(200, visitor=302)),
    "annotate:history": Door("get", everybody(200, visitor=302)),
    "annotate:submitted_one": Door("get", its_rater(200), submitted),
    "annotate:correct": Door("post", its_rater(302), submitted),
    "annotate:keys": Door("get", everybody(200, visitor=302)),
    "annotate:messages": Door("get", everybody(200, visitor=302)),
    "annotate:unread": Door("get", members(200), in_project),
    "annotate:read_message": Door("post", its_rater(302), written),
    "annotate:answer_message": Door("post", its_rater(302), written, {"answer": "Yes."}),
    "annotate:leave_as_is": Door("post", its_rater(302), in_hand),
    "annotate:know_end": Door("post", its_rater(302), in_hand),
    "annotate:begin_rating": Door("post", members(302, engineer=403), in_project),
    "annotate:join": Door("get", everybody(410), spent_token),
    "annotate:enter": Door("get", raters(200), in_project),
    "annotate:consent": Door("post", raters(302), consenting, {"agrees": "yes", "version": "1"}),
    "annotate:read_guideline": Door("post", raters(302), guided, {"version": "1"}),
    "annotate:try_again": Door("post", raters(302), in_project),
    "annotate:done": Door("get", raters(200), in_project),
    "annotate:guideline": Door("get", members(200), in_project),
    "annotate:lesson": Door("get", its_rater(200), trained),
    "annotate:read_lesson": Door("post", its_rater(302), trained),
    "annotate:work": Door("get", raters(200), in_project),
    "annotate:claim": Door("post", raters(422), in_project),  # the walk sends forms, these read JSON
    "annotate:release_held": Door("post", raters(200), in_project),
    "annotate:content": Door("get", its_rater(200), in_hand),
    "annotate:open": Door("post", its_rater(200), in_hand),
    "annotate:record": Door("post", its_rater(422), in_hand),
    "annotate:submit": Door("post", its_rater(422), in_hand),
    "annotate:give_up": Door("post", its_rater(422), in_hand),
    "annotate:report": Door("post", its_rater(422), in_hand),
    "annotate:skip": Door("post", its_rater(422), in_hand),
    "annotate:reopen": Door("post", its_rater(409), in_hand),
    "annotate:part": Door("get", its_rater(200), image),
    # leads
    "dashboard:new_project": Door("get", everybody(403, visitor=302, neighbour=200, owner=200)),
    **{name: Door(*each) for name, each in of_prms.DOORS.items()},
    **{name: Door(*each) for name, each in of_leads.DOORS.items()},
    **{name: Door(*each) for name, each in of_snapshots.DOORS.items()},
    "dashboard:people": Door("get", managers(200), in_project),
    "dashboard:invite": Door("post", managers(201), in_project, {"role": "annotator", "uses_allowed": 1, "days": 1}),
    "dashboard:revoke": Door("post", managers(302), of_invitation),
    "dashboard:change_role": Door("post", managers(302), of_annotator, {"role": "engineer"}),
    "dashboard:remove": Door("post", managers(302), of_annotator),
    "dashboard:allow_attempt": Door("post", managers(302), of_annotator),
    "dashboard:admit": Door("post", managers(302), of_annotator),
    "dashboard:reset_link": Door("post", managers(201), of_annotator),
    "dashboard:traces": Door("get", readers(200), in_project),
    "dashboard:trace": Door("get", readers(200), of_trace),
    "dashboard:make_gold": Door(
        "post", readers(302, engineer=403), of_trace, {"use": "hidden", "accepted_first_errors": ["none"]}
    ),
    "dashboard:withdraw": Door("post", readers(302, reviewer=403), of_trace, {"reason": "twice"}),
    "dashboard:take_back": Door("post", managers(302), of_open_assignment),
    "dashboard:part": Door("get", readers(200), image_in_project),
    "dashboard:adjudicate": Door("get", deciders(200), in_project),
    "dashboard:adjudicate_trace": Door("get", deciders(200), contested),
    "dashboard:decide": Door("post", deciders(302), contested, {"first_error": "none"}),
    "dashboard:send_back": Door("post", deciders(302), contested),
    "dashboard:imports": Door("get", bringers(200), in_project),
    "dashboard:send_file": Door("post", bringers(422), in_project),
    "dashboard:look_at_file": Door("get", members(403, engineer=302, lead=302, owner=302), in_project),  # at no file
    "dashboard:import": Door("get", bringers(200), of_import),
    "dashboard:import_standing": Door("get", bringers(200), of_import),
    "dashboard:cancel_import": Door("post", bringers(302), of_import),
    "dashboard:retry_import": Door("post", bringers(302), of_import),
    "dashboard:bad_lines": Door("get", members(403, engineer=404, lead=404, owner=404), of_import),  # there are none
    "dashboard:brought_in": Door("get", bringers(200), of_source),
    "dashboard:source_standing": Door("get", bringers(200), of_source),
    "dashboard:undo_import": Door("post", bringers(302), of_source),
    "dashboard:leave": Door("post", members(302, owner=422), in_project),
}


def names(patterns: list[URLPattern | URLResolver], namespace: str = "") -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from names(pattern.url_patterns, inner)
        else:
            yield f"{namespace}{pattern.name}"


def test_walk_knows_every_url() -> None:
    assert sorted(names(get_resolver().url_patterns)) == sorted(DOORS)


@pytest.mark.parametrize("name", DOORS)
def test_walk_is_answered_as_expected(name: str, house: House) -> None:
    met = {person: ask(name, house, person) for person in (*OUTSIDE, *INSIDE)}
    assert met == DOORS[name].answers


def ask(name: str, house: House, person: str) -> int:
    """What one person is answered. What their request changed is taken back, so that all meet the same house."""
    door, client = DOORS[name], house.client(person)
    with transaction.atomic():
        response = getattr(client, door.method)(reverse(name, kwargs=door.arguments(house.cast)), door.body)
        transaction.set_rollback(True)
    if person == "visitor" and response.status_code == 302 and name != "theme":
        assert response["Location"].startswith(reverse("account_login"))
    return int(response.status_code)


# Forms. Programs come with a token in place of a session, and read no page.
POSTED = [
    name for name, door in DOORS.items() if door.method == "post" and name.startswith(("annotate:", "dashboard:"))
]


@pytest.mark.parametrize("name", POSTED)
def test_walk_changes_nothing_by_looking(name: str, house: House) -> None:
    """What changes something is not done by a GET, not even for its owner."""
    address = reverse(name, kwargs=DOORS[name].arguments(house.cast))
    assert house.client("owner").get(address).status_code == 405


@pytest.mark.parametrize("name", POSTED)
def test_walk_refuses_a_form_from_elsewhere(name: str, house: House) -> None:
    client = house.client("owner", checks_forms=True)
    response = client.post(reverse(name, kwargs=DOORS[name].arguments(house.cast)), DOORS[name].body)
    assert response.status_code == 403
    assert "open for too long" in response.content.decode()


@pytest.mark.parametrize(
    "name", [f"dashboard:{each}" for each in ("change_role", "remove", "reset_link", "admit", "allow_attempt")]
)
def test_walk_finds_no_member_of_another_project(name: str, house: House) -> None:
    """The id of somebody from next door, under the address of one's own project."""
    elsewhere = Membership.objects.get(user=house.cast.neighbour)
    address = reverse(name, kwargs={"slug": house.cast.project.slug, "member": elsewhere.pk})
    assert house.client("owner").post(address, {"role": "annotator"}).status_code == 404


def test_walk_shows_a_project_to_its_members_alone(house: House) -> None:
    for person, sees in (("stranger", False), ("neighbour", False), ("engineer", True), ("annotator", True)):
        page = house.client(person).get(reverse("annotate:home")).content.decode()
        assert (house.cast.project.name in page) is sees
