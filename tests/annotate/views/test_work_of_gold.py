"""Hidden gold looks like regular work in every response, page and count that a rater can get."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse

from labeling.models import Assignment, Project, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import enqueue_gold, make_gold
from tests import factories
from tests.annotate.views.test_work import AtWork, batch, rating

pytestmark = [pytest.mark.django_db, pytest.mark.fault]

# Values that differ for every trace or response.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)|\d\d?:\d\d")
_NUMBER = re.compile(r'((?:work|submitted|lessons|^)/?|(?:assignment|user)"?[=:] ?"?)\d+')
# Headers whose values have times or assignment IDs; that they are present is compared all the same.
VOLATILE = {"Content-Length", "ETag", "Expires", "Last-Modified", "Location"}
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="\w+"|nonce="[^"]+"|X-CSRFToken[^}]+')


def place(gold_share: float) -> Project:
    """One trace of work and one of gold with the same text, in either order."""
    project = factories.make_project(name="Sums", gold_share=gold_share, reserve_share=0.0, overlap=2, pay_per_hour=30)
    problem = factories.make_problem(project, "How much is it?")
    work, gold = (factories.make_trace(project, ["One.", ["Two.", "Too."], "Three."], problem=problem) for _ in "ab")
    factories.make_entry(factories.make_lane(project), work, slots=2, key=2)
    factories.make_entry(factories.make_lane(project, arm="reserve"), more(project), slots=2, key=1)
    make_gold(trace=gold, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=None, now=factories.NOW)
    enqueue_gold(project_id=project.pk, use=GoldUse.HIDDEN, trace_ids=[gold.pk], now=factories.NOW)
    return project


def more(project: Project) -> Trace:
    """Traces that wait while the work trace is open."""
    return factories.make_trace(project, ["Another."])


def responses(me: AtWork, ending: str) -> Iterator[tuple[str, Any]]:
    """Return every response that a rater gets while working on a trace, by name."""
    slug = me.project.slug

    def post(path: str, content: Any = None) -> tuple[str, Any]:
        return path, me.client.post(f"/work/{path}", json.dumps(content or {}), content_type="application/json")

    def get(address: str) -> tuple[str, Any]:
        return address, me.client.get(address)

    yield get("/")
    yield post(f"{slug}/claim")
    mine = Assignment.objects.get(project=me.project).pk
    yield get(f"/work/{mine}/content")
    yield post(f"{mine}/open")
    yield get(f"/work/{slug}/")
    yield post(f"{mine}/record", batch(rating(1, 0, 1, active_ms=1000)))
    yield get("/")
    yield get(f"/messages/unread/{slug}")
    writes = batch(rating(2, 1, -1, active_ms=1000), rating(3, 1, 1, option=1))
    yield post(f"{mine}/{ending}", {**writes, "reason": "No."})
    if ending != "skip":
        yield get("/submitted/")
        yield get(f"/submitted/{mine}/")
        yield post(f"{mine}/reopen")
        yield get(f"/work/{slug}/?assignment={mine}")
        yield post(f"{mine}/submit", {**batch(rating(4, 0, -1)), "revision": 2})
        yield get(f"/submitted/{mine}/")
    yield get(f"/enter/{slug}/")
    yield get(f"/enter/{slug}/done")
    yield get(f"/lessons/{mine}/")
    yield get("/")


def normal(name: str, answer: HttpResponse, me: AtWork) -> list[str]:
    """Return the lines of a response without the assignment's ID and the project's name."""
    text = _TOKEN.sub("", _TIME.sub("TIME", answer.content.decode()))
    for word in (me.project.slug, str(me.rater.user)):
        name, text = name.replace(word, "WORD"), text.replace(word, "WORD")
    headers = [f"{key}: {value}" for key, value in sorted(answer.headers.items()) if key not in VOLATILE]
    responses = [str(answer.status_code), *sorted(answer.headers), *headers, *text.splitlines()]
    return [_NUMBER.sub(r"\1N", line) for line in (name, *responses)]


@pytest.mark.parametrize("ending", ["submit", "give_up", "report", "skip"])
def test_gold_and_work_look_the_same(ending: str) -> None:
    walked = []
    for gold_share, purpose in ((0.0, "work"), (1.0, "gold")):
        me = AtWork(place(gold_share))
        ending = ending.replace("_", "-")
        answers = list(responses(me, ending))
        assert Assignment.objects.get(project=me.project).purpose == purpose
        walked.append([normal(name, answer, me) for name, answer in answers])
    for work, gold in zip(*walked, strict=True):
        assert work == gold
