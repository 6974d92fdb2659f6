"""How a project stands: read from figures alone, with a reason for whatever is missing."""

import csv
import datetime as dt
import io

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from dashboard import annotator_flags
from jobs import runner
from jobs.models import Job, JobState
from labeling import queue, raters
from labeling.models import Project, ProjectStats, Rater, ReportCount, Settlement, SettlementDay
from labeling.models.gold import GoldUse
from labeling.projects import lifecycle
from labeling.quality import project_stats, recount_job, running_totals
from labeling.quality.gold import make_gold
from people import members
from people.models import Role
from tests import factories
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db
PAGES = ("overview", "annotators", "agreement")


@pytest.fixture
def cast(client: Client) -> Personas:
    cast = make_personas()
    client.force_login(cast.lead)
    return cast


def at_work(cast: Personas, n: int) -> None:
    """Two raters agree on every trace but the last, on which one sees an error at once."""
    two = submitted_work.make_raters(cast.project, 2)
    for number in range(n):
        trace = factories.make_trace(cast.project, ["One.", "Two."])
        submitted_work.submit_trace(two[0], trace, [1, -1])
        submitted_work.submit_trace(two[1], trace, [1, -1] if number < n - 1 else [-1])
    submitted_work.refresh_quality(now=factories.NOW)


@pytest.mark.parametrize("name", PAGES)
def test_pages_say_what_is_missing_before_anything_is_there(name: str, client: Client, cast: Personas) -> None:
    response = client.get(reverse(f"dashboard:{name}", args=[cast.project.slug]))
    assert response.status_code == 200
    assert any(word in response.content.decode() for word in ("Nothing has been", "no gold read yet"))


def test_annotators_say_what_watching_costs_or_why_nobody_is_watched(client: Client, cast: Personas) -> None:
    at_work(cast, 2)
    address = reverse("dashboard:annotators", args=[cast.project.slug])
    assert "by five raters at least. Too few gold traces yet." in client.get(address).content.decode()
    lifecycle.set_gold_threshold(project=cast.project, bar=0.8, by=None, now=factories.NOW)
    assert "The bar is .80. Nobody met hidden gold" in client.get(address).content.decode()
    told = {"false_pauses": 4.125, "gold_a_rater": 40}
    assert "Of 100 people who reach it exactly, 4.1 would be paused" in annotator_flags.describe_gold_threshold(
        0.8, told
    )


def test_agreement_draws_the_bias_of_raters_and_gives_its_table(client: Client, cast: Personas) -> None:
    at_work(cast, 2)
    address = reverse("dashboard:agreement", args=[cast.project.slug])
    assert "Nobody has met hidden gold yet" in client.get(address).content.decode()
    rater = factories.make_rater(cast.project)
    for number in range(6):
        for accepted, said in ([1], [1, -1] if number else [1, 1, 1]), ([None], [1, 1, 1] if number else [-1]):
            trace = factories.make_trace(cast.project)
            make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=accepted, by=None, now=factories.NOW)
            submitted_work.submit_trace(rater, trace, said, purpose="gold")
    project_stats.compute_project_stats(project_id=cast.project.pk, now=factories.NOW)
    told = client.get(address).content.decode()
    assert told.index("Missed errors by step") < told.index("False alarms by length")
    for key, first in (("missed", "2"), ("blamed", "1–4")):
        (row,) = csv.reader(io.StringIO(client.get(address, {"csv": key}).content.decode()).readlines()[1:])
        assert [row[0], row[4], row[5]] == [first, "6", "6"]
        value, low, high = (float(each) for each in row[1:4])
        assert low < value < high
        assert value == pytest.approx(1 / 6)


def test_overview_of_an_empty_project_says_what_comes_first(client: Client, cast: Personas) -> None:
    address = reverse("dashboard:overview", args=[cast.project.slug])

    def asked() -> list[str]:
        return [str(each.what) for each in client.get(address).context["todo"]]

    assert asked() == ["Bring traces in", "Publish a guideline"]  # somebody rates here already
    factories.make_trace(cast.project)
    members.remove_member(membership=cast.membership(cast.annotator), by=cast.lead, now=factories.NOW)
    assert asked() == ["Invite annotators", "Publish a guideline"]


@pytest.mark.parametrize(("name", "expected"), [("overview", 12), ("annotators", 8), ("agreement", 6)])
@pytest.mark.parametrize("n", [3, 12])
def test_pages_cost_the_same_for_many(
    n: int, name: str, expected: int, client: Client, cast: Personas, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    at_work(cast, n)
    for _ in range(n):
        members.add_member(project=cast.project, user=factories.make_user(), role=Role.ANNOTATOR, now=factories.NOW)
    with django_assert_num_queries(expected):
        client.get(reverse(f"dashboard:{name}", args=[cast.project.slug]))


def test_agreement_tells_each_statistic_with_its_n_or_why_not(client: Client, cast: Personas) -> None:
    at_work(cast, 6)
    address = reverse("dashboard:agreement", args=[cast.project.slug])
    told = {each.key: each for each in client.get(address).context["agreement"].figures}
    assert told["exact"].value == pytest.approx(5 / 6)
    assert (told["exact"].n, told["exact"].interval[:1]) == (6, "[")
    assert all(each.value is not None or each.why for each in told.values())
    assert (told["over_blame"].value, told["over_blame"].n > 0) == (0, True)  # the page has one figure of it, not two
    rows = list(csv.reader(io.StringIO(client.get(address + "?csv=agreement").content.decode())))
    assert float(rows[1][1]) == pytest.approx(5 / 6)
    assert client.get(address + "?csv=nothing").status_code == 404


def test_agreement_is_told_of_a_guideline_and_of_every_arm(client: Client, cast: Personas) -> None:
    at_work(cast, 6)
    row = ProjectStats.objects.get(project=cast.project)
    (version,) = row.content["guideline"]
    low = {**version, "key": 2, "first_error": {**version["first_error"], "exact": {"value": 0.25, "n_paired": 4}}}
    row.content["guideline"].append(low)
    row.content["everything"] = {**low, "key": "all"}
    row.content["headline"]["is_audit_slice"] = True
    row.save()
    address = reverse("dashboard:agreement", args=[cast.project.slug])

    def told(asked: str) -> tuple[str, object, bool]:
        found = client.get(address + asked).context["agreement"]
        values = {each.key: each.value for each in found.figures}
        return found.part.name, values["exact"], "fleiss_kappa" in values

    assert told("") == told("?of=nonsense") == ("Audit slice", pytest.approx(5 / 6), True)
    assert told("?of=guideline-2") == ("guideline 2", 0.25, False)  # what was not computed is not made up
    assert told("?of=every-arm")[:2] == ("Every arm", 0.25)
    page = client.get(address + "?of=guideline-2").content.decode()
    assert "?of=guideline-2&amp;csv=agreement" in page
    rows = list(csv.reader(io.StringIO(client.get(address + "?of=guideline-2&csv=agreement").content.decode())))
    assert (rows[1][1], len(rows)) == ("0.25", len(low["steps"]) + 4)
    for key, lines in (("confusion", 4), ("pairs", 2)):
        assert len(client.get(address + f"?csv={key}").content.decode().splitlines()) == lines


def test_overview_cuts_its_charts_down_to_four_weeks(client: Client, cast: Personas) -> None:
    at_work(cast, 3)
    first = (timezone.now() - dt.timedelta(days=60)).date()
    Settlement.objects.filter(trace=Settlement.objects.earliest("pk").pk).update(changed_at=days_ago(60))
    running_totals.apply_drift(
        project_id=cast.project.pk, drift=running_totals.compute_drift(project_id=cast.project.pk)
    )
    project_stats.compute_project_stats(project_id=cast.project.pk, now=days_ago(0))
    address = reverse("dashboard:overview", args=[cast.project.slug])
    whole, cut = (
        list(csv.reader(io.StringIO(client.get(address + asked).content.decode())))
        for asked in ("?csv=settled", "?weeks=4&csv=settled")
    )
    assert (whole[1][0], len(cut) - 1) == (first.isoformat(), 28)
    assert whole[-1] == cut[-1]  # what was settled before is counted on
    assert "?weeks=4&amp;csv=settled" in client.get(address + "?weeks=4").content.decode()


def test_overview_stands_while_counts_wait_for_a_recount(client: Client, cast: Personas) -> None:
    at_work(cast, 3)
    SettlementDay.objects.filter(project=cast.project).update(traces=-8)
    project_stats.compute_project_stats(project_id=cast.project.pk, now=factories.NOW)
    assert client.get(reverse("dashboard:overview", args=[cast.project.slug])).status_code == 200


def test_agreement_page_says_what_the_recount_put_right(client: Client, cast: Personas) -> None:
    at_work(cast, 3)
    address = reverse("dashboard:agreement", args=[cast.project.slug])
    assert "recount" not in client.get(address).content.decode()
    for drifts, says in ((False, "found nothing to put right"), (True, "The last recount put 3 sums right.")):
        if drifts:
            SettlementDay.objects.update(traces=F("traces") + 1)
            ReportCount.objects.filter(pk=ReportCount.objects.earliest("pk").pk).update(readings=99)
        recount_job.enqueue_recounts(now=timezone.now())
        job = Job.objects.unfinished().get(kind=recount_job.KIND)
        assert runner.run_job(job.pk, recount_job.chunks) == JobState.DONE
        project_stats.compute_project_stats(project_id=cast.project.pk, now=timezone.now())
        assert says in client.get(address).content.decode()


def days_ago(n: int) -> dt.datetime:
    return timezone.now() - dt.timedelta(days=n)


def test_annotators_are_paused_and_let_go_on(client: Client, cast: Personas) -> None:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    pause = reverse("dashboard:pause_annotator", args=[cast.project.slug, rater.pk])
    assert "Say why" in client.post(pause, {"reason": ""}, follow=True).content.decode()
    assert "Let us talk." in client.post(pause, {"reason": "Let us talk."}, follow=True).content.decode()
    rater.refresh_from_db()
    assert rater.paused_at is not None
    client.post(reverse("dashboard:resume_annotator", args=[cast.project.slug, rater.pk]))
    rater.refresh_from_db()
    assert rater.paused_at is None
    elsewhere = factories.make_rater(factories.make_project())
    assert client.post(reverse("dashboard:pause_annotator", args=[cast.project.slug, elsewhere.pk])).status_code == 404


def test_review_shows_what_others_said_and_asks_once(client: Client, cast: Personas) -> None:
    at_work(cast, 1)
    rater = Rater.objects.filter(project=cast.project).exclude(user=cast.annotator).earliest("pk")
    assignment = rater.assignments.get()
    address = reverse("dashboard:submission", args=[cast.project.slug, assignment.pk])
    review = client.get(address).context["review"]
    assert [line.said.rating if line.said else None for line in review.lines] == [1, -1]
    assert [[said.rating for _voice, said in line.others] for line in review.lines] == [[-1], []]
    ask = reverse("dashboard:create_correction_request", args=[cast.project.slug, assignment.pk])
    assert client.post(ask, {"note": "Look at step 2."}).status_code == 302
    again = client.post(ask, {"note": "Again."})
    assert again.status_code == 422
    assert "already" in again.content.decode()
    assert client.get(address + "?revision=9").status_code == 404


def test_annotators_are_found_by_name_and_by_what_is_so(client: Client, cast: Personas) -> None:
    at_work(cast, 2)
    address = reverse("dashboard:annotators", args=[cast.project.slug])
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    raters.pause_rater(rater=rater, reason="See me.", by=cast.lead, now=factories.NOW)

    def listed(asked: str) -> list[str]:
        return [each.name for each in client.get(address + asked).context["annotators"].listed]

    assert len(listed("")) == 3
    assert listed("?choice=paused") == listed("?q=ANNOTATOR") == ["annotator"]
    assert listed("?choice=paused&q=nobody") == listed("?choice=flagged") == []
    assert "Nobody like that" in client.get(address + "?q=nobody").content.decode()


def test_annotator_shows_what_they_read_and_how_it_stands(client: Client, cast: Personas) -> None:
    at_work(cast, 3)
    rater = Rater.objects.filter(project=cast.project).exclude(user=cast.annotator).latest("pk")
    address = reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])
    shown = client.get(address).context["shown"]
    assert [read.found for read in shown.reads] == [f"first error at step {n}" for n in (1, 2, 2)]
    assert shown.reads[-1].stands == "settled: first error at step 2"
    assert not any(read.is_off for read in shown.reads)
    assert shown.person.others.told.endswith("of 3")
    cost = CaptureQueriesContext(connection)
    with cost:
        client.get(address)
    at_work(cast, 9)
    with CaptureQueriesContext(connection) as again:
        client.get(address)
    assert len(again) == len(cost) <= 15


def test_annotators_carry_their_last_fourteen_days(client: Client, cast: Personas) -> None:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    for days, ms in ((30, 7000), (2, 3000), (2, 1000)):
        trace = factories.make_trace(cast.project)
        factories.make_submitted(rater, trace, ms=ms, submitted_at=days_ago(days))
    project_stats.compute_project_stats(project_id=cast.project.pk, now=days_ago(0))
    every = reverse("dashboard:annotators", args=[cast.project.slug])
    assert "2 traces in 14 days, 2 on the best of them" in client.get(every).content.decode()
    mine = reverse("dashboard:annotator", args=[cast.project.slug, rater.pk])
    for address, cells in ((every + "?csv=days", 1), (mine + "?csv=days", 0)):
        rows = list(csv.reader(io.StringIO(client.get(address).content.decode())))
        assert len(rows) == 15
        assert [row[cells:] for row in rows if row[-1]][1:] == [[days_ago(2).date().isoformat(), "2", "2.0"]]


def test_overview_names_bad_problems_and_unread_guidelines_until_something_came_of_them(
    client: Client, cast: Personas
) -> None:
    project = cast.project
    Rater.objects.filter(project=project).update(removed_at=factories.NOW)  # those of the cast
    trace, other = factories.make_trace(project), factories.make_trace(project)
    two = submitted_work.make_raters(project, 2)
    submitted_work.report_problem(two[0], trace)
    submitted_work.refresh_quality(now=factories.NOW)

    def asked() -> dict[str, tuple[str, str]]:
        told = client.get(reverse("dashboard:overview", args=[project.slug])).context["todo"]
        return {str(each.what): (each.count, each.address) for each in told}

    count, address = asked()["Trace with a problem reported as bad"]
    assert (count, [each.trace for each in client.get(address).context["hits"].rows]) == ("1", [trace])
    lifecycle.publish_guideline(project=project, body="# New", by=cast.lead, now=factories.NOW)
    version = Project.objects.get(pk=project.pk).guideline
    Rater.objects.filter(pk=two[0].pk).update(read_guideline=version)
    count, address = asked()["Annotator has not read guideline 1"]
    assert (count, [each.rater for each in client.get(address).context["annotators"].listed]) == ("1", [two[1]])
    queue.withdraw_traces(trace_ids=[trace.pk, other.pk], reason="No figure.", now=factories.NOW, by=cast.lead)
    Rater.objects.filter(pk=two[1].pk).update(read_guideline=version)
    assert asked() == {}
