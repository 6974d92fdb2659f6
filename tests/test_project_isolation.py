"""Access checks beyond `tests.test_permissions`: ids of another project in the URL of one's own, other HTTP methods,
and people who have left."""

import pytest
from django.db import transaction
from django.urls import reverse

from labeling.models import Gold
from people import members
from people.models import Role
from tests import factories
from tests.exports.url_cases import snapshot_args
from tests.people.personas import MEMBERS, LoggedInPersonas, Personas, make_personas
from tests.test_permissions import URL_CASES

pytestmark = pytest.mark.django_db

PAGES = [name for name in URL_CASES if name.startswith(("annotate:", "dashboard:"))]
REFUSED = {403, 404, 405}


def request_status(
    personas: LoggedInPersonas, person: str, name: str, named: dict[str, object], method: str = ""
) -> int:
    case = URL_CASES[name]
    response = getattr(personas.client(person), method or case.method)(reverse(name, kwargs=named), case.body)
    return int(response.status_code)


@pytest.fixture
def elsewhere(personas: LoggedInPersonas) -> Personas:
    """Another project, which the owner of the first one leads as well."""
    cast = make_personas("other-")
    members.add_member(project=cast.project, user=personas.cast.owner, role=Role.LEAD, now=factories.NOW)
    return cast


def test_ids_of_another_project_are_not_found(personas: LoggedInPersonas, elsewhere: Personas) -> None:
    statuses = {}
    for name in PAGES:
        with transaction.atomic():
            named = URL_CASES[name].arguments(elsewhere)
            if "slug" in named and len(named) > 1:
                statuses[name] = request_status(personas, "owner", name, {**named, "slug": personas.cast.project.slug})
            transaction.set_rollback(True)
    assert len(statuses) > 40
    assert {name: status for name, status in statuses.items() if status != 404} == {}


def test_forms_and_searches_ignore_ids_of_another_project(personas: LoggedInPersonas, elsewhere: Personas) -> None:
    client, here = personas.client("owner"), {"slug": personas.cast.project.slug}
    trace, source = factories.make_trace(elsewhere.project), factories.make_source(elsewhere.project)
    assert client.post(reverse("dashboard:adopt_screening_set", kwargs=here), {"trace": [trace.pk]}).status_code == 422
    assert not Gold.objects.exists()
    for query in ({"q": trace.pk}, {"q": f"#{trace.pk}"}, {"q": trace.ref}, {"source": source.pk}):
        page = client.get(reverse("dashboard:traces", kwargs=here), query)
        assert list(page.context["result"].rows) == []
    assert snapshot_args(elsewhere)
    snapshot = elsewhere.project.snapshots.get()
    values = {"backend": "pushed", "model": "m", "semantics": "hazard", "trained_on": snapshot.pk}
    page = client.post(reverse("dashboard:register_prm", kwargs=here), values)
    assert page.status_code == 422
    assert "trained_on" in page.context["register_form"].errors


def test_other_methods_are_refused_too(personas: LoggedInPersonas) -> None:
    """A person who may not view a page may not post to its URL either."""
    statuses = {}
    for name in [name for name in PAGES if URL_CASES[name].method == "get"]:
        for person in MEMBERS:
            if URL_CASES[name].answers[person] in REFUSED:
                with transaction.atomic():
                    named = URL_CASES[name].arguments(personas.cast)
                    statuses[name, person] = request_status(personas, person, name, named, "post")
                    transaction.set_rollback(True)
    assert {who: status for who, status in statuses.items() if status not in REFUSED} == {}


# People who have left can still reach their open assignments and submissions, so that no input is lost.
OWN_WORK_URLS = {
    "content",
    "open",
    "record",
    "submit",
    "give_up",
    "report",
    "skip",
    "reopen",
    "discard",
    "part",
    "work",
    "claim",
}
OWN_WORK_URLS |= {"release_held", "submitted_one", "correct", "leave_as_is", "know_end", "lesson"}


@pytest.mark.parametrize("person", ["annotator", "lead"])
def test_former_member_is_treated_as_a_stranger(person: str, personas: LoggedInPersonas) -> None:
    statuses, cast = {}, personas.cast
    for name in PAGES:
        with transaction.atomic():
            named = URL_CASES[name].arguments(cast)
            members.remove_member(membership=cast.membership(getattr(cast, person)), by=cast.owner, now=factories.NOW)
            statuses[name] = request_status(personas, person, name, named)
            transaction.set_rollback(True)
    reachable = {name.partition(":")[2] for name in PAGES if statuses[name] != URL_CASES[name].answers["stranger"]}
    assert reachable == (OWN_WORK_URLS if person == "annotator" else set())
