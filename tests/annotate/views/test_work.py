"""The work page and the requests of its scripts."""

import json
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from accounts import rate_limits
from accounts.models import User
from labeling.models import Assignment, Judgment, Option, Project, Rater, RatingEdit, Submission, Trace
from people.models import Membership
from tests import factories

pytestmark = pytest.mark.django_db


class AtWork:
    """A rater with a test client."""

    def __init__(self, project: Project, user: User | None = None) -> None:
        self.project = project
        self.rater: Rater = factories.make_rater(project, user)
        assert self.rater.user is not None
        Membership.objects.get_or_create(
            project=project, user=self.rater.user, defaults={"role": "annotator", "joined_at": timezone.now()}
        )
        self.client = Client()
        self.client.force_login(self.rater.user)

    def post(self, path: str, content: Any = None) -> tuple[int, Any]:
        response = self.client.post(f"/work/{path}", json.dumps(content or {}), content_type="application/json")
        return response.status_code, json.loads(response.content or b"null")

    def claim(self) -> dict[str, Any]:
        status, trace = self.post(f"{self.project.slug}/claim", {"opened": True})
        assert status == 200, trace
        found: dict[str, Any] = trace
        return found


@pytest.fixture
def project() -> Project:
    project = factories.make_project(overlap=1)
    lane = factories.make_lane(project, "uniform")
    for _ in range(3):
        factories.make_entry(lane, factories.make_trace(project, ["One.", ["Two.", "Two, said otherwise."], "Three."]))
    return project


def rating(sequence: int, step: int, rated: int | None, option: int = 0, **more: Any) -> dict[str, Any]:
    return {"sequence": sequence, "seen": 0, "kind": "rate", "step": step, "option": option, "rating": rated, **more}


def batch(*writes: dict[str, Any]) -> dict[str, Any]:
    return {"client": "c1", "writes": list(writes)}


def test_claim_returns_the_trace_without_hidden_facts(project: Project) -> None:
    trace = AtWork(project).claim()
    assert [step["options"][0]["text"] for step in trace["steps"]] == ["One.", "Two.", "Three."]
    assert trace["state"] == "opened"
    data = json.dumps(trace)
    assert not any(word in data for word in ("gold", "purpose", "arm", "score", "lane", "verifier"))


@pytest.mark.parametrize(("shows", "is_right", "data"), [(False, True, None), (True, None, None), (True, False, False)])
def test_claim_shows_the_verdict_if_the_project_does(
    shows: bool, is_right: bool | None, data: bool | None, project: Project
) -> None:
    Project.objects.update(shows_final_verdict=shows)
    Trace.objects.update(is_right=is_right, outcome_by="" if is_right is None else "file")
    me = AtWork(project)
    assert me.claim()["problem"]["is_answer_right"] is data
    assert Assignment.objects.get().saw_final_verdict is shows
    Project.objects.update(shows_final_verdict=not shows)  # fixed when the trace was opened
    content = me.client.get(f"/work/{Assignment.objects.get().pk}/content").json()
    assert content["problem"]["is_answer_right"] is data


def test_claim_includes_images_of_plain_traces(project: Project) -> None:
    for option in Option.objects.filter(step__position=0):
        factories.make_image_part(option, description="A plot")
    me = AtWork(project)
    trace = me.claim()
    assert trace["is_agent"] is False
    [part] = trace["steps"][0]["options"][0]["parts"]
    assert (part["kind"], part["description"], part["width"], part["height"]) == ("image", "A plot", 8, 6)
    sent = me.client.get(part["url"])
    assert (sent.content, sent["Content-Type"], sent["X-Content-Type-Options"]) == (b"png", "image/png", "nosniff")
    assert {"private", "immutable"} <= {word.strip() for word in sent["Cache-Control"].split(",")}


def test_claim_on_an_empty_queue_is_refused_with_a_message(project: Project) -> None:
    Assignment.objects.all().delete()
    empty = AtWork(factories.make_project())
    status, data = empty.post(f"{empty.project.slug}/claim")
    assert (status, data["code"]) == (409, "nothing_left")
    assert data["message"]


def test_record_saves_ratings_and_returns_the_version(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    status, data = me.post(f"{assignment}/record", batch(rating(1, 0, 1), rating(2, 1, -1, active_ms=800)))
    assert (status, data["version"], data["lost"]) == (200, 1, [])
    assert set(Judgment.objects.values_list("rating", flat=True)) == {1, -1}


def test_record_refuses_a_whole_batch_and_names_the_edit(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    status, data = me.post(f"{assignment}/record", batch(rating(1, 0, 1), rating(2, 7, 1)))
    assert (status, data["index"], data["field"]) == (422, 1, "step")
    assert not RatingEdit.objects.exists()


@pytest.mark.parametrize("body", ["{", '{"client": 3}', '{"client": "c", "writes": [{"step": "one"}]}', "[]", "\x00"])
def test_record_answers_invalid_bodies_with_422(project: Project, body: str) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    response = me.client.post(f"/work/{assignment}/record", body, content_type="application/json")
    assert response.status_code == 422
    assert json.loads(response.content)["message"]


def test_submit_includes_the_last_ratings_and_is_idempotent(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    content = batch(rating(1, 0, 1), rating(2, 1, 1), rating(3, 2, 0))
    first, second = me.post(f"{assignment}/submit", content), me.post(f"{assignment}/submit", content)
    assert first == second == (200, {"state": "submitted", "revision": 1, "finish_reason": "solution"})
    assert Submission.objects.count() == 1


def test_submit_that_promised_another_ending_is_refused(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    content = batch(rating(1, 0, 1), rating(2, 1, 1), rating(3, 2, 0))
    promise = {"seen": 0, "code": "first_error", "number": 3}
    status, data = me.post(f"{assignment}/submit", {**content, "promise": promise})
    assert (status, data["code"]) == (409, "unseen_ratings")
    assert me.post(f"{assignment}/submit", {**content, "promise": {"seen": 1, "code": "no_error"}})[0] == 200
    late = {"client": "c2", "writes": [rating(1, 0, -1)], "promise": {**promise, "number": 1}}
    status, data = me.post(f"{assignment}/submit", late)
    assert (status, data["code"]) == (409, "already_submitted")


def test_claim_prefers_an_open_trace_that_the_page_does_not_show(project: Project) -> None:
    me = AtWork(project)
    first = me.claim()["assignment"]
    assert me.claim()["assignment"] == first
    _, second = me.post(f"{project.slug}/claim", {"opened": True, "shown": [first]})
    assert second["assignment"] != first
    for opened in (True, False):
        _, trace = me.post(f"{project.slug}/claim", {"opened": opened, "shown": [second["assignment"]]})
        assert (trace["assignment"], trace["state"]) == (first, "opened")


def test_page_and_content_are_not_cached(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    for path in (f"/work/{project.slug}/", f"/work/{assignment}/content"):
        assert "no-store" in me.client.get(path)["Cache-Control"]


def test_incomplete_submit_is_refused_and_keeps_the_ratings(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    status, data = me.post(f"{assignment}/submit", batch(rating(1, 0, 1)))
    assert (status, data["code"]) == (409, "submission_incomplete")
    assert Judgment.objects.count() == 1


def test_skip_returns_the_trace_and_the_next_claim_gives_another(project: Project) -> None:
    me = AtWork(project)
    first = me.claim()
    assert me.post(f"{first['assignment']}/skip", {"client": "c1", "reason": "too long"})[0] == 200
    assert me.claim()["assignment"] != first["assignment"]


def test_reopen_restores_the_ratings(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    me.post(f"{assignment}/submit", batch(rating(1, 0, 1), rating(2, 1, -1), rating(3, 1, 1, option=1)))
    status, trace = me.post(f"{assignment}/reopen")
    assert (status, trace["is_correction"]) == (200, True)
    assert trace["submitted_turns"] == trace["turns"]
    assert [judged["rating"] for turn in trace["turns"] for judged in turn["judgments"]] == [1, -1, 1]


def test_correction_of_a_trace_that_was_given_up_may_be_submitted_unchanged(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    me.post(f"{assignment}/give-up", batch(rating(1, 0, 1), rating(2, 1, -1)) | {"reason": "too long"})
    assert me.post(f"{assignment}/reopen")[1]["submitted_turns"] is None


def test_discard_ends_a_correction_and_keeps_its_edits(project: Project) -> None:
    me = AtWork(project)
    assignment = me.claim()["assignment"]
    me.post(f"{assignment}/submit", batch(rating(1, 0, 1), rating(2, 1, -1), rating(3, 1, 1, option=1)))
    me.post(f"{assignment}/reopen")
    status, answer = me.post(f"{assignment}/discard", batch(rating(4, 0, -1)))
    assert (status, answer) == (200, {"state": "submitted"})
    assert Submission.objects.count() == 1
    assert RatingEdit.objects.filter(sequence=4, was_applied=True).exists()
    _, trace = me.post(f"{assignment}/reopen")
    assert [judged["rating"] for turn in trace["turns"] for judged in turn["judgments"]] == [1, -1, 1]


@pytest.mark.parametrize("verb", ["record", "submit", "give-up", "report", "skip", "reopen", "discard", "open"])
def test_assignment_of_another_user_is_not_found(project: Project, verb: str) -> None:
    assignment = AtWork(project).claim()["assignment"]
    status, data = AtWork(project).post(f"{assignment}/{verb}", {"client": "c2", "writes": [], "reason": "x"})
    assert (status, data["code"]) == (404, "unknown")


def test_page_shows_the_open_trace_only_to_its_rater(project: Project) -> None:
    me = AtWork(project)
    trace = me.claim()
    shown = me.client.get(f"/work/{project.slug}/")
    assert shown.status_code == 200
    assert f'"assignment": {trace["assignment"]}' in shown.content.decode()
    stranger = Client()
    stranger.force_login(factories.make_user())
    assert stranger.get(f"/work/{project.slug}/").status_code == 404


def test_page_escapes_hostile_text(project: Project) -> None:
    hostile = factories.make_project(overlap=1)
    factories.make_entry(factories.make_lane(hostile), factories.make_trace(hostile, ["</script><script>alert(1)"]))
    me = AtWork(hostile)
    me.claim()
    assert "<script>alert(1)" not in me.client.get(f"/work/{hostile.slug}/").content.decode()


@pytest.fixture
def slow_limits(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of a day, so that a slow machine refills no bucket during a test."""
    settings.RATE_LIMIT_FACTOR = 1
    for action, amount in {"claim": 20, "writes": 1000, "write_bytes": 200_000}.items():
        monkeypatch.setitem(rate_limits.LIMITS, action, (rate_limits.Limit("rater", amount, rate_limits.DAY),))
    cache.clear()


@pytest.mark.usefixtures("slow_limits")
def test_edits_beyond_the_quota_are_refused_for_a_while(project: Project) -> None:
    me = AtWork(project)
    pk = me.claim()["assignment"]
    for n in range(30):
        write = {**rating(n + 1, 0, None), "kind": "comment", "text": "x" * 10_000}
        response = me.client.post(f"/work/{pk}/record", json.dumps(batch(write)), content_type="application/json")
        if response.status_code == 429:
            break
    assert 15 <= n < 29
    assert response.json()["code"] == "too_many_requests"
    assert int(response.headers["Retry-After"]) >= 1
    assert RatingEdit.objects.count() == n
    assert me.post(f"{pk}/content")[0] == 405
    assert me.client.get(f"/work/{pk}/content").status_code == 200


@pytest.mark.usefixtures("slow_limits")
def test_claims_are_limited(project: Project) -> None:
    me = AtWork(project)
    statuses = [me.post(f"{project.slug}/claim")[0] for _ in range(25)]
    assert statuses[0] == 200
    assert statuses[-1] == 429
    assert me.rater.assignments.count() <= project.open_limit


def test_a_held_trace_that_was_removed_is_unknown(project: Project) -> None:
    """An undone import removes traces that no one has opened. Their rater is remembered."""
    work = AtWork(project)
    status, trace = work.post(f"{project.slug}/claim", {"opened": False})
    assert status == 200, trace
    place = trace["assignment"]
    Assignment.objects.get(pk=place).delete()
    assert work.client.get(f"/work/{place}/content").status_code == 404
    assert [work.post(f"{place}/{verb}", batch())[0] for verb in ("record", "submit", "skip")] == [404, 404, 404]
    status, refusal = work.post(f"{place}/open")
    assert (status, refusal["code"]) == (409, "assignment_lease_lost")
    assert work.post(f"{place}/keep") == (200, {"lease_ends_at": None})
