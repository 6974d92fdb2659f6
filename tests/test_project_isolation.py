"""Access checks that complement `tests.test_permissions`.

IDs of another project under the URL of one's own, unusual methods, and former members."""

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

pytestmark = [pytest.mark.django_db, pytest.mark.fault]

PAGES = [name for name in URL_CASES if name.startswith(("annotate:", "dashboard:"))]
REFUSED = {403, 404, 405}


def answer(personas: LoggedInPersonas, person: str, name: str, named: dict[str, object], method: str = "") -> int:
    door = URL_CASES[name]
    response = getattr(personas.client(person), method or door.method)(reverse(name, kwargs=named), door.body)
    return int(response.status_code)


@pytest.fixture
def elsewhere(personas: LoggedInPersonas) -> Personas:
    """Another project with the same owner."""
    cast = make_personas("other-")
    members.add_member(project=cast.project, user=personas.cast.owner, role=Role.LEAD, now=factories.NOW)
    return cast


def test_ids_of_another_project_are_not_found(personas: LoggedInPersonas, elsewhere: Personas) -> None:
    met = {}
    for name in PAGES:
        with transaction.atomic():
            named = URL_CASES[name].arguments(elsewhere)
            if "slug" in named and len(named) > 1:
                met[name] = answer(personas, "owner", name, {**named, "slug": personas.cast.project.slug})
            transaction.set_rollback(True)
    assert len(met) > 40
    assert {name: status for name, status in met.items() if status != 404} == {}


def test_ids_of_another_project_are_found_in_no_form_and_no_search(
    personas: LoggedInPersonas, elsewhere: Personas
) -> None:
    client, here = personas.client("owner"), {"slug": personas.cast.project.slug}
    trace, source = factories.make_trace(elsewhere.project), factories.make_source(elsewhere.project)
    assert client.post(reverse("dashboard:adopt_screening_set", kwargs=here), {"trace": [trace.pk]}).status_code == 422
    assert not Gold.objects.exists()
    for query in ({"q": trace.pk}, {"q": f"#{trace.pk}"}, {"q": trace.ref}, {"source": source.pk}):
        page = client.get(reverse("dashboard:traces", kwargs=here), query)
        assert list(page.context["traces"]) == []
    assert snapshot_args(elsewhere)
    snapshot = elsewhere.project.snapshots.get()
    told = {"backend": "pushed", "model": "m", "semantics": "hazard", "trained_on": snapshot.pk}
    page = client.post(reverse("dashboard:register_prm", kwargs=here), told)
    assert page.status_code == 422
    assert "trained_on" in page.context["register_form"].errors


def test_other_methods_give_no_more_access(personas: LoggedInPersonas) -> None:
    """A page whose form is sent to its own URL refuses a POST by anyone who may not open the page."""
    let_in = {}
    for name in [name for name in PAGES if URL_CASES[name].method == "get"]:
        for person in MEMBERS:
            if URL_CASES[name].answers[person] in REFUSED:
                with transaction.atomic():
                    named = URL_CASES[name].arguments(personas.cast)
                    let_in[name, person] = answer(personas, person, name, named, "post")
                    transaction.set_rollback(True)
    assert {who: status for who, status in let_in.items() if status not in REFUSED} == {}


# URLs that former members can still use, for their own open traces and submissions, so that no work is lost.
THEIRS = {
    "content",
    "open",
    "record",
    "submit",
    "give_up",
    "report",
    "skip",
    "reopen",
    "discard",
    "image",
    "work",
    "claim",
}
THEIRS |= {"release_held", "submitted_one", "correct", "leave_as_is", "know_end", "lesson", "retired_answer", "keep"}
THEIRS |= {"reveal"}


@pytest.mark.parametrize("person", ["annotator", "lead"])
def test_former_members_have_no_access(person: str, personas: LoggedInPersonas) -> None:
    met, cast = {}, personas.cast
    for name in PAGES:
        with transaction.atomic():
            named = URL_CASES[name].arguments(cast)
            members.remove_member(membership=cast.membership(getattr(cast, person)), by=cast.owner, now=factories.NOW)
            met[name] = answer(personas, person, name, named)
            transaction.set_rollback(True)
    better = {name.partition(":")[2] for name in PAGES if met[name] != URL_CASES[name].answers["stranger"]}
    assert better == (THEIRS if person == "annotator" else set())
