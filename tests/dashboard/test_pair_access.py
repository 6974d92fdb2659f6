"""Halves of pairs on the pages on which people judge: a reviewer reads one half, leads read both."""

import pytest
from django.urls import reverse

from accounts.models import User
from labeling import queue, raters
from labeling.models import Option, PairedTrace, PairReader, PairReviewer, Settlement, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from people import members
from prm import arena
from tests import factories
from tests.api import api_clients
from tests.factories import NOW
from tests.labeling.quality import submitted_work
from tests.people.personas import LoggedInPersonas
from tests.prm import arena_project

pytestmark = pytest.mark.django_db


def make_contested_pair(personas: LoggedInPersonas) -> list[Trace]:
    project = personas.cast.project
    traces = [factories.make_trace(project, ["One.", "Two."]) for _ in range(2)]
    for trace, half in zip(traces, ("with", "without"), strict=True):
        PairedTrace.objects.create(trace=trace, project=project, pair="hint-1", half=half)
        submitted_work.submit_trace(factories.make_rater(project), trace, [1, 1])
    Settlement.objects.filter(trace__in=traces).update(state="contested", reason="differ_at_limit", changed_at=NOW)
    return traces


@pytest.mark.fault
def test_reviewer_reads_one_half_and_leads_both(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    first, second = make_contested_pair(personas)
    gold = make_gold(trace=second, use=GoldUse.HIDDEN, accepted_first_errors=[None], by=None, now=NOW)
    assignments = {trace: trace.assignments.get().pk for trace in (first, second)}
    cases = reverse("dashboard:adjudication", args=[cast.project.slug])
    reviewer = personas.client("reviewer")
    assert [row.trace for row, _task in reviewer.get(cases).context["queue"]] == [first]  # the oldest was opened
    pages = {
        "adjudication_case": (first.pk, second.pk),
        "trace": (first.pk, second.pk),
        "submission": (assignments[first], assignments[second]),
        "gold_trace": (0, gold.pk),
    }
    for name, keys in pages.items():
        own, other = (reverse(f"dashboard:{name}", args=[cast.project.slug, key]) for key in keys)
        assert [personas.client(role).get(other).status_code for role in ("reviewer", "lead")] == [403, 200], name
        assert reviewer.get(own).status_code == (200 if keys[0] else 404)
    decide = reverse("dashboard:decide_case", args=[cast.project.slug, second.pk])
    assert reviewer.post(decide, {"first_error": "none"}).status_code == 403
    assert len(personas.client("lead").get(cases).context["queue"]) == 2
    assert set(PairReviewer.objects.values_list("user", "half")) == {(cast.reviewer.pk, "with")}


@pytest.mark.fault
def test_images_and_texts_of_the_other_half_are_not_served(personas: LoggedInPersonas) -> None:
    slug, traces = personas.cast.project.slug, make_contested_pair(personas)
    parts = [factories.make_image_part(Option.objects.filter(step__trace=trace).earliest("pk")) for trace in traces]
    addresses = [reverse("dashboard:trace_image", args=[slug, part.image.digest]) for part in parts if part.image]

    def get_statuses(person: str) -> list[int]:
        client = personas.client(person)
        return [client.get(address).status_code for address in addresses]

    def list_traces(user: User) -> list[int]:
        page = api_clients.make_client(user).get(reverse("api:traces", args=[slug])).json()
        return [each["id"] for each in page["traces"]]

    assert [get_statuses("reviewer"), list_traces(personas.cast.reviewer)] == [[404, 404], []]
    personas.client("reviewer").get(reverse("dashboard:trace", args=[slug, traces[0].pk]))
    assert [get_statuses("reviewer"), list_traces(personas.cast.reviewer)] == [[200, 404], [traces[0].pk]]
    assert [get_statuses("lead"), len(list_traces(personas.cast.lead))] == [[200, 200], 2]
    assert get_statuses("viewer") == [200, 200]


def test_rater_who_reviews_keeps_their_half(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    first, second = make_contested_pair(personas)
    rater = members.begin_rating(project=cast.project, by=cast.reviewer, now=NOW)
    PairReader.objects.create(rater=rater, pair="hint-1", half="without")
    assert not queue.reserve_half(trace=first, user=cast.reviewer)
    assert queue.reserve_half(trace=second, user=cast.reviewer)
    # A person who read a half as a reviewer has it as a rater, too.
    assert queue.reserve_half(trace=first, user=cast.viewer)
    later = raters.ensure_member(project=cast.project, user=cast.viewer, now=NOW)
    assert PairReader.objects.get(rater=later).half == "with"
    unpaired = factories.make_trace(cast.project)
    assert all(queue.reserve_half(trace=unpaired, user=user) for user in (cast.reviewer, cast.viewer))


def test_arena_uses_no_pairs(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    paired, plain = arena_project.make_settled(project, 2)
    PairedTrace.objects.create(trace=paired, project=project, pair="hint-1", half="with")
    assert [row.trace_id for row in arena.select_wrong_steps(project.pk)] == [plain.pk]
