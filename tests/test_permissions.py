"""Request every URL as each kind of person: a visitor who is not logged in, a stranger with an account, the owner of
another project, and each role of this one. A URL without an expectation fails."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from django.db import transaction
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from people import invitations
from people.models import Membership, Role
from people.roles import RATING_ROLES
from tests import factories
from tests.dashboard import url_cases as dashboard_cases
from tests.exports import url_cases as snapshot_cases
from tests.people.personas import MEMBERS, OUTSIDERS, LoggedInPersonas, Personas
from tests.prm import url_cases as prm_cases
from tests.url_arguments import (
    api_token_args,
    assignment_in_progress_args,
    consent_args,
    contested_trace_args,
    guideline_args,
    image_args,
    import_args,
    job_args,
    message_args,
    open_assignment_args,
    project_args,
    project_image_args,
    snapshot_args,
    snapshot_file_args,
    source_args,
    spent_token_args,
    submitted_args,
    trace_args,
    training_args,
)

pytestmark = pytest.mark.django_db
Arguments = Callable[[Personas], dict[str, object]]


class UrlCase(NamedTuple):
    """A request to a URL and the status code that each person gets."""

    method: str
    answers: dict[str, int]
    arguments: Arguments = lambda cast: {}
    body: dict[str, object] | None = None


def everyone(status: int, **others: int) -> dict[str, int]:
    return {**dict.fromkeys((*OUTSIDERS, *MEMBERS), status), **others}


def members(status: int, **others: int) -> dict[str, int]:
    """Expect this status for all members, 404 for others, and the login page for a visitor."""
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **dict.fromkeys(MEMBERS, status), **others}


def managers(status: int) -> dict[str, int]:
    return members(403, lead=status, owner=status)


def annotator_member_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug, "member": cast.membership(cast.annotator).pk}


def invitation_args(cast: Personas) -> dict[str, object]:
    made, _ = invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=factories.NOW)
    return {"slug": cast.project.slug, "invitation": made.pk}


def importers(status: int) -> dict[str, int]:
    return managers(status) | {"engineer": status}


def readers(status: int, **others: int) -> dict[str, int]:
    """Expect this status for members who may read the whole project: all but annotators."""
    return members(status, annotator=403, **others)


def raters(status: int) -> dict[str, int]:
    """Expect this status for roles that rate; for others there is no page to rate on."""
    return everyone(404, visitor=302, **dict.fromkeys(RATING_ROLES, status))


def assigned_rater(status: int) -> dict[str, int]:
    """Expect this status for the annotator with the assignment only, not even for the owner."""
    return everyone(404, visitor=302, annotator=status)


def adjudicators(status: int) -> dict[str, int]:
    return members(403, reviewer=status, lead=status, owner=status)


URL_CASES: dict[str, UrlCase] = {
    # monitoring
    "live": UrlCase("get", everyone(200)),
    "ready": UrlCase("get", everyone(200)),
    "metrics": UrlCase("get", everyone(404)),
    # API: requires a token; tests/api requests these URLs with a token of each role
    "api:schema": UrlCase("get", everyone(200)),
    "api:projects": UrlCase("get", everyone(401)),
    "api:project": UrlCase("get", everyone(401), project_args),
    "api:imports": UrlCase("post", everyone(401), project_args),
    "api:import": UrlCase("get", everyone(401), job_args),
    "api:bad_lines": UrlCase("get", everyone(401), job_args),
    "api:snapshots": UrlCase("post", everyone(401), project_args),
    "api:snapshot": UrlCase("get", everyone(401), snapshot_args),
    "api:file": UrlCase("get", everyone(401), snapshot_file_args),
    # authentication
    "account_login": UrlCase("get", everyone(302, visitor=200)),
    "account_logout": UrlCase("get", everyone(200, visitor=302)),
    "account_inactive": UrlCase("get", everyone(200)),
    "account_signup": UrlCase("get", everyone(200)),
    "account_reset_password": UrlCase("get", everyone(200)),
    "account_change_password": UrlCase("get", everyone(200, visitor=302)),
    "tokens": UrlCase("get", everyone(200, visitor=302)),
    "withdraw_token": UrlCase("post", everyone(404, visitor=302, engineer=302), api_token_args),
    "login_link": UrlCase("get", everyone(410), spent_token_args),
    "new_password": UrlCase("get", everyone(410), spent_token_args),
    "theme": UrlCase("post", everyone(302)),
    # annotators
    "annotate:home": UrlCase("get", everyone(200, visitor=302)),
    "annotate:history": UrlCase("get", everyone(200, visitor=302)),
    "annotate:submitted_one": UrlCase("get", assigned_rater(200), submitted_args),
    "annotate:correct": UrlCase("post", assigned_rater(302), submitted_args),
    "annotate:keys": UrlCase("get", everyone(200, visitor=302)),
    "annotate:messages": UrlCase("get", everyone(200, visitor=302)),
    "annotate:unread": UrlCase("get", members(200), project_args),
    "annotate:read_message": UrlCase("post", assigned_rater(302), message_args),
    "annotate:answer_message": UrlCase("post", assigned_rater(302), message_args, {"answer": "Yes."}),
    "annotate:leave_as_is": UrlCase("post", assigned_rater(302), assignment_in_progress_args),
    "annotate:know_end": UrlCase("post", assigned_rater(302), assignment_in_progress_args),
    "annotate:begin_rating": UrlCase("post", members(302, engineer=403), project_args),
    "annotate:join": UrlCase("get", everyone(410), spent_token_args),
    "annotate:enter": UrlCase("get", raters(200), project_args),
    "annotate:consent": UrlCase("post", raters(302), consent_args, {"agrees": "yes", "version": "1"}),
    "annotate:read_guideline": UrlCase("post", raters(302), guideline_args, {"version": "1"}),
    "annotate:try_again": UrlCase("post", raters(302), project_args),
    "annotate:done": UrlCase("get", raters(200), project_args),
    "annotate:guideline": UrlCase("get", members(200), project_args),
    "annotate:lesson": UrlCase("get", assigned_rater(200), training_args),
    "annotate:read_lesson": UrlCase("post", assigned_rater(302), training_args),
    "annotate:work": UrlCase("get", raters(200), project_args),
    "annotate:claim": UrlCase("post", raters(422), project_args),  # this test sends forms, these views read JSON
    "annotate:release_held": UrlCase("post", raters(200), project_args),
    "annotate:content": UrlCase("get", assigned_rater(200), assignment_in_progress_args),
    "annotate:open": UrlCase("post", assigned_rater(200), assignment_in_progress_args),
    "annotate:record": UrlCase("post", assigned_rater(422), assignment_in_progress_args),
    "annotate:submit": UrlCase("post", assigned_rater(422), assignment_in_progress_args),
    "annotate:give_up": UrlCase("post", assigned_rater(422), assignment_in_progress_args),
    "annotate:report": UrlCase("post", assigned_rater(422), assignment_in_progress_args),
    "annotate:skip": UrlCase("post", assigned_rater(422), assignment_in_progress_args),
    "annotate:reopen": UrlCase("post", assigned_rater(409), assignment_in_progress_args),
    "annotate:discard": UrlCase("post", assigned_rater(422), assignment_in_progress_args),
    "annotate:part": UrlCase("get", assigned_rater(200), image_args),
    # leads
    "dashboard:new_project": UrlCase("get", everyone(403, visitor=302, neighbour=200, owner=200)),
    **{name: UrlCase(*each) for name, each in prm_cases.PRM_URL_CASES.items()},
    **{name: UrlCase(*each) for name, each in dashboard_cases.DASHBOARD_URL_CASES.items()},
    **{name: UrlCase(*each) for name, each in snapshot_cases.SNAPSHOT_URL_CASES.items()},
    "dashboard:members": UrlCase("get", managers(200), project_args),
    "dashboard:create_invitation": UrlCase(
        "post", managers(201), project_args, {"role": "annotator", "uses_allowed": 1, "days": 1}
    ),
    "dashboard:revoke_invitation": UrlCase("post", managers(302), invitation_args),
    "dashboard:change_member_role": UrlCase("post", managers(302), annotator_member_args, {"role": "engineer"}),
    "dashboard:remove_member": UrlCase("post", managers(302), annotator_member_args),
    "dashboard:allow_screening_attempt": UrlCase("post", managers(302), annotator_member_args),
    "dashboard:admit_member": UrlCase("post", managers(302), annotator_member_args),
    "dashboard:create_reset_link": UrlCase("post", managers(201), annotator_member_args),
    "dashboard:traces": UrlCase("get", readers(200), project_args),
    "dashboard:trace": UrlCase("get", readers(200), trace_args),
    "dashboard:make_trace_gold": UrlCase(
        "post", readers(302, engineer=403), trace_args, {"use": "hidden", "accepted_first_errors": ["none"]}
    ),
    "dashboard:withdraw_trace": UrlCase("post", readers(302, reviewer=403), trace_args, {"reason": "twice"}),
    "dashboard:reclaim_from_annotator": UrlCase("post", managers(302), open_assignment_args),
    "dashboard:trace_image": UrlCase("get", readers(200), project_image_args),
    "dashboard:adjudication": UrlCase("get", adjudicators(200), project_args),
    "dashboard:adjudication_case": UrlCase("get", adjudicators(200), contested_trace_args),
    "dashboard:decide_case": UrlCase("post", adjudicators(302), contested_trace_args, {"first_error": "none"}),
    "dashboard:send_case_back": UrlCase("post", adjudicators(302), contested_trace_args),
    "dashboard:imports": UrlCase("get", importers(200), project_args),
    "dashboard:upload_import_file": UrlCase("post", importers(422), project_args),
    "dashboard:import_preview": UrlCase(
        "get", members(403, engineer=302, lead=302, owner=302), project_args
    ),  # without a file
    "dashboard:import": UrlCase("get", importers(200), import_args),
    "dashboard:import_progress": UrlCase("get", importers(200), import_args),
    "dashboard:cancel_import": UrlCase("post", importers(302), import_args),
    "dashboard:retry_import": UrlCase("post", importers(302), import_args),
    "dashboard:download_bad_lines": UrlCase(
        "get", members(403, engineer=404, lead=404, owner=404), import_args
    ),  # there are none
    "dashboard:import_source": UrlCase("get", importers(200), source_args),
    "dashboard:import_source_progress": UrlCase("get", importers(200), source_args),
    "dashboard:undo_source_import": UrlCase("post", importers(302), source_args),
    "dashboard:leave_project": UrlCase("post", members(302, owner=422), project_args),
}


def names(patterns: list[URLPattern | URLResolver], namespace: str = "") -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from names(pattern.url_patterns, inner)
        else:
            yield f"{namespace}{pattern.name}"


def test_every_url_has_a_case() -> None:
    assert sorted(names(get_resolver().url_patterns)) == sorted(URL_CASES)


@pytest.mark.parametrize("name", URL_CASES)
def test_each_person_gets_the_expected_status(name: str, personas: LoggedInPersonas) -> None:
    statuses = {person: request_status(name, personas, person) for person in (*OUTSIDERS, *MEMBERS)}
    assert statuses == URL_CASES[name].answers


def request_status(name: str, personas: LoggedInPersonas, person: str) -> int:
    """Return the status code for one person. Roll back, so that all persons see the same project."""
    case, client = URL_CASES[name], personas.client(person)
    with transaction.atomic():
        response = getattr(client, case.method)(reverse(name, kwargs=case.arguments(personas.cast)), case.body)
        transaction.set_rollback(True)
    if person == "visitor" and response.status_code == 302 and name != "theme":
        assert response["Location"].startswith(reverse("account_login"))
    return int(response.status_code)


# Forms only: API clients use a token instead of a session.
POSTED = [
    name for name, case in URL_CASES.items() if case.method == "post" and name.startswith(("annotate:", "dashboard:"))
]


@pytest.mark.parametrize("name", POSTED)
def test_get_of_a_form_url_is_refused(name: str, personas: LoggedInPersonas) -> None:
    """A GET changes nothing, not even for the owner."""
    address = reverse(name, kwargs=URL_CASES[name].arguments(personas.cast))
    assert personas.client("owner").get(address).status_code == 405


@pytest.mark.parametrize("name", POSTED)
def test_form_without_a_csrf_token_is_refused(name: str, personas: LoggedInPersonas) -> None:
    client = personas.client("owner", checks_forms=True)
    response = client.post(reverse(name, kwargs=URL_CASES[name].arguments(personas.cast)), URL_CASES[name].body)
    assert response.status_code == 403
    assert "403_csrf.html" in [template.name for template in response.templates]


@pytest.mark.parametrize(
    "name",
    [
        f"dashboard:{each}"
        for each in (
            "change_member_role",
            "remove_member",
            "create_reset_link",
            "admit_member",
            "allow_screening_attempt",
        )
    ],
)
def test_member_of_another_project_is_not_found(name: str, personas: LoggedInPersonas) -> None:
    """Send the id of another project's member to the URL of one's own project."""
    elsewhere = Membership.objects.get(user=personas.cast.neighbour)
    address = reverse(name, kwargs={"slug": personas.cast.project.slug, "member": elsewhere.pk})
    assert personas.client("owner").post(address, {"role": "annotator"}).status_code == 404


def test_home_shows_a_project_to_its_members_only(personas: LoggedInPersonas) -> None:
    for person, sees in (("stranger", False), ("neighbour", False), ("engineer", True), ("annotator", True)):
        page = personas.client(person).get(reverse("annotate:home")).content.decode()
        assert (personas.cast.project.name in page) is sees
