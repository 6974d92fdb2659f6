"""Request every URL as a visitor, a stranger, the owner of another project, and each role of the project.

A URL without an expected result fails."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from events.models import Event
from people import invitations
from people import members as members_of_project
from people.models import Membership, Role
from people.roles import RATING_ROLES
from tests import factories
from tests.dashboard import url_cases as of_leads
from tests.exports import url_cases as of_snapshots
from tests.live import url_cases as of_live
from tests.machines import url_cases as of_judges
from tests.people.personas import MEMBERS, OUTSIDERS, LoggedInPersonas, Personas
from tests.prm import url_cases as of_prms
from tests.url_arguments import (
    answered_question_args,
    api_token_args,
    assignment_in_progress_args,
    authenticator_app_args,
    consent_args,
    contested_trace_args,
    decided_trace_args,
    guideline_args,
    image_args,
    import_args,
    job_args,
    member_with_app_args,
    message_args,
    open_assignment_args,
    passkey_args,
    project_args,
    project_image_args,
    project_token_args,
    question_args,
    retired_gold_args,
    snapshot_args,
    snapshot_file_args,
    source_args,
    spent_token_args,
    submitted_args,
    trace_args,
    training_args,
    waiting_device_args,
)

pytestmark = pytest.mark.django_db
Arguments = Callable[[Personas], dict[str, object]]


class UrlCase(NamedTuple):
    """A URL with its method, arguments and the expected status per user."""

    method: str
    answers: dict[str, int]
    arguments: Arguments = lambda cast: {}
    body: dict[str, object] | None = None


def everybody(status: int, **others: int) -> dict[str, int]:
    return {**dict.fromkeys((*OUTSIDERS, *MEMBERS), status), **others}


def members(status: int, **others: int) -> dict[str, int]:
    """Expect 404 for non-members, one status for all members, and the login page for visitors."""
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **dict.fromkeys(MEMBERS, status), **others}


def managers(status: int) -> dict[str, int]:
    return members(403, lead=status, owner=status)


def of_annotator(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug, "member": cast.membership(cast.annotator).pk}


def of_removed_annotator(cast: Personas) -> dict[str, object]:
    membership = members_of_project.add_member(
        project=cast.project, user=factories.make_user(), role=Role.ANNOTATOR, now=factories.NOW
    )
    members_of_project.remove_member(membership=membership, by=cast.lead, now=factories.NOW)
    return {"slug": cast.project.slug, "member": membership.pk}


def of_invitation(cast: Personas) -> dict[str, object]:
    made, _ = invitations.create_invitation(project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=factories.NOW)
    return {"slug": cast.project.slug, "invitation": made.pk}


def bringers(status: int) -> dict[str, int]:
    return managers(status) | {"engineer": status}


def readers(status: int, **others: int) -> dict[str, int]:
    """Expect the status for members who may read the project: all except annotators."""
    return members(status, annotator=403, **others)


def raters(status: int) -> dict[str, int]:
    """Raters of the project; others have no work page in it."""
    return everybody(404, visitor=302, **dict.fromkeys(RATING_ROLES, status))


def its_rater(status: int) -> dict[str, int]:
    """Expect access only for the assignment's rater, not even for the owner."""
    return everybody(404, visitor=302, annotator=status)


def deciders(status: int) -> dict[str, int]:
    return members(403, reviewer=status, lead=status, owner=status)


URL_CASES: dict[str, UrlCase] = {
    # monitoring
    "live": UrlCase("get", everybody(200)),
    "ready": UrlCase("get", everybody(200)),
    "metrics": UrlCase("get", everybody(404)),
    # API: refused without a token; tests/api covers each role with one
    "api:schema": UrlCase("get", everybody(200)),
    "api:security_events": UrlCase("get", everybody(401)),
    "api:unknown_address": UrlCase("get", everybody(404), lambda _cast: {"rest": "projects/a/events"}),
    "api:projects": UrlCase("get", everybody(401)),
    "api:project": UrlCase("get", everybody(401), project_args),
    "api:agreement": UrlCase("get", everybody(401), project_args),
    "api:consensus": UrlCase("get", everybody(401), project_args),
    "api:steer_traces": UrlCase("post", everybody(401), project_args),
    "api:trace_steps": UrlCase("post", everybody(401), trace_args),
    "api:groups": UrlCase("put", everybody(401), project_args),
    "api:group": UrlCase("delete", everybody(401), snapshot_args),
    "api:rules": UrlCase("post", everybody(401), project_args),
    "api:rule": UrlCase("delete", everybody(401), lambda cast: {"slug": cast.project.slug, "rule": 1}),
    "api:pay": UrlCase("get", everybody(401), project_args),
    "api:imports": UrlCase("post", everybody(401), project_args),
    "api:import": UrlCase("get", everybody(401), job_args),
    "api:bad_lines": UrlCase("get", everybody(401), job_args),
    "api:snapshots": UrlCase("post", everybody(401), project_args),
    "api:snapshot": UrlCase("get", everybody(401), snapshot_args),
    "api:file": UrlCase("get", everybody(401), snapshot_file_args),
    # login, logout and passwords
    "account_login": UrlCase("get", everybody(302, visitor=200)),
    "account_logout": UrlCase("get", everybody(200, visitor=302)),
    "account_inactive": UrlCase("get", everybody(200)),
    "account_signup": UrlCase("get", everybody(200)),
    "account_reset_password": UrlCase("get", everybody(200)),
    "account_change_password": UrlCase("get", everybody(200, visitor=302)),
    "sign_ins": UrlCase("get", everybody(200, visitor=302)),
    "account_reauthenticate": UrlCase("get", everybody(200, visitor=302)),
    "mfa_authenticate": UrlCase("get", everybody(302)),  # only in the middle of a login
    "mfa_login_webauthn": UrlCase("get", everybody(302)),
    "mfa_index": UrlCase("get", everybody(200, visitor=302)),
    "change_details": UrlCase("get", everybody(200, visitor=302)),
    "mfa_activate_totp": UrlCase("get", everybody(200, visitor=302)),
    "mfa_deactivate_totp": UrlCase("get", everybody(404, visitor=302, lead=200), authenticator_app_args),
    "mfa_view_recovery_codes": UrlCase("get", everybody(404, visitor=302)),  # without a factor there are none
    "mfa_download_recovery_codes": UrlCase("get", everybody(404, visitor=302)),
    "mfa_generate_recovery_codes": UrlCase("get", everybody(200, visitor=302)),
    "mfa_add_webauthn": UrlCase("get", everybody(200, visitor=302)),
    "mfa_remove_webauthn": UrlCase("get", everybody(404, visitor=302, lead=200), passkey_args),
    "end_session": UrlCase("post", everybody(302), lambda cast: {"reference": "0" * 24}),
    "end_other_sessions": UrlCase("post", everybody(302)),
    # no provider is configured
    "sso_login": UrlCase("post", everybody(404)),
    "sso_confirm": UrlCase("post", everybody(404, visitor=302)),
    "sso_connect": UrlCase("post", everybody(404, visitor=302)),
    "sso_disconnect": UrlCase("post", everybody(302)),
    "sso_callback": UrlCase("get", everybody(404)),
    "tokens": UrlCase("get", everybody(200, visitor=302)),
    "withdraw_token": UrlCase("post", everybody(404, visitor=302, engineer=302), api_token_args),
    "login_link": UrlCase("get", everybody(410), spent_token_args),
    "new_password": UrlCase("get", everybody(410), spent_token_args),
    "theme": UrlCase("post", everybody(302)),
    # annotators
    "annotate:home": UrlCase("get", everybody(200, visitor=302)),
    "annotate:history": UrlCase("get", everybody(200, visitor=302)),
    "annotate:submitted_one": UrlCase("get", its_rater(200), submitted_args),
    "annotate:correct": UrlCase("post", its_rater(302), submitted_args),
    "annotate:your_data": UrlCase("get", everybody(200, visitor=302)),
    "annotate:download_your_data": UrlCase("get", everybody(200, visitor=302)),
    "annotate:erase_account": UrlCase("post", everybody(422, visitor=302)),
    "annotate:keys": UrlCase("get", everybody(200, visitor=302)),
    "annotate:messages": UrlCase("get", everybody(200, visitor=302)),
    "annotate:unread": UrlCase("get", members(200), project_args),
    "annotate:read_message": UrlCase("post", its_rater(302), message_args),
    "annotate:answer_message": UrlCase("post", its_rater(302), message_args, {"answer": "Yes."}),
    "annotate:leave_as_is": UrlCase("post", its_rater(302), assignment_in_progress_args),
    "annotate:know_end": UrlCase("post", its_rater(302), assignment_in_progress_args),
    "annotate:begin_rating": UrlCase("post", members(302, engineer=403, viewer=403), project_args),
    "annotate:join": UrlCase("get", everybody(410), spent_token_args),
    "annotate:enter": UrlCase("get", raters(200), project_args),
    "annotate:consent": UrlCase("post", raters(302), consent_args, {"agrees": "yes", "version": "1"}),
    "annotate:decline_consent": UrlCase("post", raters(302), consent_args),
    "annotate:read_guideline": UrlCase("post", raters(302), guideline_args, {"version": "1"}),
    "annotate:try_again": UrlCase("post", raters(302), project_args),
    "annotate:done": UrlCase("get", raters(200), project_args),
    "annotate:guideline": UrlCase("get", members(200), project_args),
    "annotate:guide": UrlCase("get", members(200), project_args),
    "annotate:day": UrlCase("get", everybody(200, visitor=302)),
    "annotate:set_break": UrlCase("post", everybody(302), body={"minutes": "50"}),
    "annotate:keep": UrlCase("post", its_rater(200), assignment_in_progress_args),
    "annotate:reveal": UrlCase("post", its_rater(422), assignment_in_progress_args),
    "annotate:questions": UrlCase("get", its_rater(200), assignment_in_progress_args),
    "annotate:ask": UrlCase("post", its_rater(200), assignment_in_progress_args, {"text": "Why?", "step": "0"}),
    "annotate:dispute": UrlCase("post", its_rater(302), training_args, {"text": "No.", "step": "0"}),
    "annotate:retired_answer": UrlCase("get", its_rater(200), retired_gold_args),
    "annotate:message_trace": UrlCase("get", its_rater(302), answered_question_args),
    "annotate:lesson": UrlCase("get", its_rater(200), training_args),
    "annotate:read_lesson": UrlCase("post", its_rater(302), training_args),
    "annotate:work": UrlCase("get", raters(200), project_args),
    "annotate:claim": UrlCase("post", raters(422), project_args),  # these expect JSON, and the test sends forms
    "annotate:release_held": UrlCase("post", raters(200), project_args),
    "annotate:content": UrlCase("get", its_rater(200), assignment_in_progress_args),
    "annotate:open": UrlCase("post", its_rater(200), assignment_in_progress_args),
    "annotate:record": UrlCase("post", its_rater(422), assignment_in_progress_args),
    "annotate:submit": UrlCase("post", its_rater(422), assignment_in_progress_args),
    "annotate:give_up": UrlCase("post", its_rater(422), assignment_in_progress_args),
    "annotate:report": UrlCase("post", its_rater(422), assignment_in_progress_args),
    "annotate:skip": UrlCase("post", its_rater(422), assignment_in_progress_args),
    "annotate:reopen": UrlCase("post", its_rater(409), assignment_in_progress_args),
    "annotate:discard": UrlCase("post", its_rater(422), assignment_in_progress_args),
    "annotate:image": UrlCase("get", its_rater(200), image_args),
    # operators; members of projects are none
    "dashboard:security_log": UrlCase("get", everybody(403, visitor=302)),
    "dashboard:download_security_log": UrlCase("get", everybody(403, visitor=302)),
    # leads
    "dashboard:new_project": UrlCase("get", everybody(403, visitor=302, neighbour=200, owner=200, lead=200)),
    **{name: UrlCase(*each) for name, each in of_prms.PRM_URL_CASES.items()},
    **{name: UrlCase(*each) for name, each in of_judges.JUDGE_URL_CASES.items()},
    **{name: UrlCase(*each) for name, each in of_live.LIVE_URL_CASES.items()},
    **{name: UrlCase(*each) for name, each in of_leads.DASHBOARD_URL_CASES.items()},
    **{name: UrlCase(*each) for name, each in of_snapshots.SNAPSHOT_URL_CASES.items()},
    "dashboard:reset_factors": UrlCase("post", members(403, owner=302), member_with_app_args),
    "dashboard:members": UrlCase("get", managers(200), project_args),
    "dashboard:create_invitation": UrlCase(
        "post", managers(201), project_args, {"role": "annotator", "uses_allowed": 1, "days": 1}
    ),
    "dashboard:revoke_invitation": UrlCase("post", managers(302), of_invitation),
    "dashboard:change_member_role": UrlCase("post", managers(302), of_annotator, {"role": "engineer"}),
    "dashboard:remove_member": UrlCase("get", managers(200), of_annotator),
    "dashboard:release_device": UrlCase("post", managers(302), waiting_device_args),
    "dashboard:api_tokens": UrlCase("get", members(403, owner=200), project_args),
    "dashboard:revoke_api_token": UrlCase("post", members(403, owner=302), project_token_args),
    "dashboard:erase_member": UrlCase("get", members(403, owner=200), of_annotator),
    "dashboard:restore_member": UrlCase("post", managers(302), of_removed_annotator),
    "dashboard:allow_screening_attempt": UrlCase("post", managers(302), of_annotator),
    "dashboard:admit_member": UrlCase("post", managers(302), of_annotator),
    "dashboard:create_reset_link": UrlCase("post", managers(201), of_annotator),
    "dashboard:traces": UrlCase("get", readers(200), project_args),
    "dashboard:answer_question": UrlCase(
        "post", readers(302, engineer=403, viewer=403), question_args, {"text": "Because.", "step": "0"}
    ),
    "dashboard:trace": UrlCase("get", readers(200), trace_args),
    "dashboard:make_trace_gold": UrlCase(
        "post", readers(302, engineer=403, viewer=403), trace_args, {"use": "hidden", "accepted_first_errors": ["none"]}
    ),
    "dashboard:withdraw_trace": UrlCase(
        "post", readers(302, reviewer=403, viewer=403), trace_args, {"reason": "twice"}
    ),
    "dashboard:edit_trace_steps": UrlCase("get", bringers(200), trace_args),
    "dashboard:restore_trace_steps": UrlCase("post", bringers(302), trace_args),
    "dashboard:reclaim_from_annotator": UrlCase("post", managers(302), open_assignment_args),
    "dashboard:trace_image": UrlCase("get", readers(200), project_image_args),
    "dashboard:adjudication": UrlCase("get", deciders(200), project_args),
    "dashboard:reopen_trace": UrlCase("post", deciders(302), decided_trace_args),
    "dashboard:request_trace_label": UrlCase("post", deciders(302), decided_trace_args),
    "dashboard:adjudication_case": UrlCase("get", deciders(200), contested_trace_args),
    "dashboard:decide_case": UrlCase("post", deciders(302), contested_trace_args, {"first_error": "none"}),
    "dashboard:send_case_back": UrlCase("post", deciders(302), contested_trace_args),
    "dashboard:imports": UrlCase("get", bringers(200), project_args),
    "dashboard:upload_import_file": UrlCase("post", bringers(422), project_args),
    "dashboard:import_preview": UrlCase(
        "get", members(403, engineer=302, lead=302, owner=302), project_args
    ),  # without a file
    "dashboard:import": UrlCase("get", bringers(200), import_args),
    "dashboard:import_progress": UrlCase("get", bringers(200), import_args),
    "dashboard:cancel_import": UrlCase("post", bringers(302), import_args),
    "dashboard:retry_import": UrlCase("post", bringers(302), import_args),
    "dashboard:download_bad_lines": UrlCase(
        "get", members(403, engineer=404, lead=404, owner=404), import_args
    ),  # there are none
    "dashboard:import_source": UrlCase("get", bringers(200), source_args),
    "dashboard:import_source_progress": UrlCase("get", bringers(200), source_args),
    "dashboard:undo_source_import": UrlCase("post", bringers(302), source_args),
    "dashboard:audit": UrlCase("get", managers(200), project_args),
    "dashboard:download_audit": UrlCase("get", managers(200), project_args),
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
@pytest.mark.fault
def test_every_url_by_person(name: str, personas: LoggedInPersonas) -> None:
    address = reverse(name, kwargs=URL_CASES[name].arguments(personas.cast))
    met = {person: ask(name, address, personas, person) for person in (*OUTSIDERS, *MEMBERS)}
    assert met == URL_CASES[name].answers


def ask(name: str, address: str, personas: LoggedInPersonas, person: str) -> int:
    """Check the status for one user, and roll back the changes of the request."""
    door, client = URL_CASES[name], personas.client(person)
    with transaction.atomic():
        latest = Event.objects.aggregate(Max("pk", default=0))["pk__max"] if person == "owner" else None
        response = getattr(client, door.method)(address, door.body)
        if latest is not None:
            check_confirmation(name, response, latest)
        transaction.set_rollback(True)
    check_headers(response)
    if person == "visitor" and response.status_code == 302 and name != "theme":
        assert response["Location"].startswith(reverse("account_login"))
    return int(response.status_code)


# Events about access. What causes one must ask the user for a confirmation.
SENSITIVE_EVENTS = ("account.", "download.", "invitation.", "member.", "snapshot.downloaded", "user.", "webhook.")
# These ask for none: they take access away, concern the user alone, or answer a worker who waits.
NOT_ASKED = {
    "annotate:begin_rating",
    "dashboard:choose_mail",
    "dashboard:delete_webhook",
    "dashboard:release_device",
    "dashboard:revoke_api_token",
    "dashboard:revoke_invitation",
}


def check_confirmation(name: str, response: Any, latest: int) -> None:
    """Check that a file, or an event about access, is behind a confirmation."""
    sends_file = response.headers.get("Content-Disposition", "").startswith("attachment")
    is_sensitive = sends_file or any(
        what.startswith(SENSITIVE_EVENTS) for what in Event.objects.filter(pk__gt=latest).values_list("what", flat=True)
    )
    is_guarded = getattr(response.resolver_match.func, "needs_confirmation", False)
    assert not is_sensitive or is_guarded or name in NOT_ASKED


def check_headers(response: Any) -> None:
    """Check the security headers that every response must have."""
    assert set(settings.SECURITY_HEADERS) <= set(response.headers)
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"
    caching = set(response["Cache-Control"].split(", "))
    assert {"no-store", "no-cache"} & caching or {"private", "immutable"} <= caching
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


# Forms; the API uses tokens instead of sessions.
POSTED = [
    name for name, door in URL_CASES.items() if door.method == "post" and name.startswith(("annotate:", "dashboard:"))
]


@pytest.mark.parametrize("name", POSTED)
def test_get_changes_nothing(name: str, personas: LoggedInPersonas) -> None:
    """URLs that change something refuse GET, even for the owner."""
    address = reverse(name, kwargs=URL_CASES[name].arguments(personas.cast))
    assert personas.client("owner").get(address).status_code == 405


@pytest.mark.parametrize("name", POSTED)
def test_form_without_csrf_token_is_refused(name: str, personas: LoggedInPersonas) -> None:
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
    """A member ID of another project is not found under one's own project."""
    elsewhere = Membership.objects.get(user=personas.cast.neighbour)
    address = reverse(name, kwargs={"slug": personas.cast.project.slug, "member": elsewhere.pk})
    assert personas.client("owner").post(address, {"role": "annotator"}).status_code == 404


def test_project_is_visible_only_to_members(personas: LoggedInPersonas) -> None:
    for person, sees in (("stranger", False), ("neighbour", False), ("engineer", True), ("annotator", True)):
        page = personas.client(person).get(reverse("annotate:home")).content.decode()
        assert (personas.cast.project.name in page) is sees
