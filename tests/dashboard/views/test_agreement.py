"""The agreement page: every statistic has its n and interval, or a reason for what is missing."""

import datetime as dt

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from charts import number_format
from dashboard import statistics
from jobs import runner
from jobs.models import Job, JobState
from labeling.models import ProjectStats, Rater, RaterModelFit, ReportCount, SettlementDay
from labeling.models.consensus import FitBasis
from labeling.models.gold import GoldUse
from labeling.quality import project_stats, recount_job, redundancy
from labeling.quality.gold import make_gold
from stats.estimates import Reason
from tests import factories
from tests.api import api_clients
from tests.dashboard.labeled_project import count_queries_as_it_grows, label_traces, read_csv
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas

pytestmark = pytest.mark.django_db
REASON = "reason if missing"


@pytest.fixture
def address(cast: Personas) -> str:
    return reverse("dashboard:agreement", args=[cast.project.slug])


def test_agreement_on_kinds_and_severity_is_shown_if_the_project_asks(
    client: Client, cast: Personas, address: str
) -> None:
    label_traces(cast, 2)
    assert b'id="explanations"' not in client.get(address).content
    cast.project.asks_error_category = cast.project.asks_severity = True
    cast.project.save()
    shown = client.get(address).content.decode()
    assert 'data-statistic="kind"' in shown
    assert 'data-statistic="severity"' in shown


def test_project_without_submissions_has_no_agreement(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.context["agreement"] is None
    assert 'data-empty="agreement"' in response.content.decode()


@pytest.mark.fault
def test_page_costs_the_same_for_many(client: Client, cast: Personas, address: str) -> None:
    few, many = count_queries_as_it_grows(client, cast, address)
    assert few == many <= 8


def test_statistics_have_n_and_interval_or_a_reason(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 6)
    estimates = {each.key: each for each in client.get(address).context["agreement"]["estimates"]}
    assert estimates["exact"].value == pytest.approx(5 / 6)
    assert estimates["exact"].n == 6
    assert estimates["exact"].interval
    assert all(each.value is not None or each.why for each in estimates.values())
    assert estimates["over_blame"].value == 0
    assert estimates["over_blame"].n > 0
    assert float(read_csv(client, address, "agreement")[1][1]) == pytest.approx(5 / 6)
    assert client.get(address + "?csv=nothing").status_code == 404


@pytest.mark.fault
@pytest.mark.parametrize("key", ["agreement", "pairs", "slices", "positions"])
def test_every_row_has_an_interval_or_a_reason(key: str, client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 6)
    names, *rows = read_csv(client, address, key)
    lows = [column for column, name in enumerate(names) if name.endswith("from") and "bootstrap" not in name]
    reasons = [column for column, name in enumerate(names) if name.endswith(REASON)]
    assert rows
    assert len(lows) == len(reasons) > 0
    for row in rows:
        for low, reason in zip(lows, reasons, strict=True):
            assert bool(row[low]) != bool(row[reason]), row


@pytest.mark.fault
def test_recall_and_bootstrap_are_in_the_table(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 6)
    estimates = {each.key: each for each in client.get(address).context["agreement"]["estimates"]}
    assert estimates["recall -1"].value == pytest.approx(1 - estimates["over_credit"].value)
    assert estimates["recall 0"].value is None
    assert estimates["recall 0"].why == statistics.explain_missing_value(Reason.NO_CASES)
    assert read_csv(client, address, "agreement")[1][7:10] == [
        "",
        "",
        statistics.explain_missing_value(Reason.FEW_FOR_BOOTSTRAP),
    ]
    row = ProjectStats.objects.get(project=cast.project)
    row.content["headline"]["first_error"]["exact"] |= {"bootstrap": [0.25, 0.5], "bootstrap_reason": None}
    row.content["headline"]["first_error"]["pairs_with_a_censored_report"] = 3
    row.save()
    assert read_csv(client, address, "agreement")[1][7:10] == ["0.25", "0.5", ""]
    assert 'data-not-compared="3"' in client.get(address).content.decode()


@pytest.mark.fault
def test_statistics_can_cover_a_guideline_or_all_sources(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 6)
    row = ProjectStats.objects.get(project=cast.project)
    (version,) = row.content["guideline"]
    low = {**version, "key": 2, "first_error": {**version["first_error"], "exact": {"value": 0.25, "n_paired": 4}}}
    row.content["guideline"].append(low)
    row.content["everything"] = {**low, "key": "all"}
    row.content["headline"]["is_audit_slice"] = True
    row.save()

    def load(part: str) -> tuple[str, dict[str, float | None]]:
        agreement = client.get(address, {"of": part}).context["agreement"]
        return agreement["part"].key, {each.key: each.value for each in agreement["estimates"]}

    for part in ("", "nonsense"):
        key, values = load(part)
        assert key == ""
        assert values["exact"] == pytest.approx(5 / 6)
        assert "fleiss_kappa" in values
    key, values = load("guideline-2")
    assert (key, values["exact"]) == ("guideline-2", 0.25)
    assert "fleiss_kappa" not in values  # it was not computed
    assert load("every-arm")[1]["exact"] == 0.25
    assert "?of=guideline-2&amp;csv=agreement" in client.get(address + "?of=guideline-2").content.decode()
    rows = read_csv(client, address, "agreement", of="guideline-2")
    assert rows[1][1] == "0.25"
    assert len(rows) == len(low["steps"]) + 4
    assert len(read_csv(client, address, "confusion")) == 4
    assert len(read_csv(client, address, "pairs")) == 2


@pytest.mark.fault
def test_bias_charts_have_missed_errors_before_false_alarms(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 2)
    assert 'data-empty="bias"' in client.get(address).content.decode()
    rater = factories.make_rater(cast.project)
    for number in range(6):
        for accepted, ratings in ([1], [1, -1] if number else [1, 1, 1]), ([None], [1, 1, 1] if number else [-1]):
            trace = factories.make_trace(cast.project)
            make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=accepted, by=None, now=factories.NOW)
            submitted_work.submit_trace(rater, trace, ratings, purpose="gold")
    project_stats.compute_project_stats(project_id=cast.project.pk, now=factories.NOW)
    assert [chart.table.key for chart in client.get(address).context["agreement"]["bias"]] == ["missed", "blamed"]
    for key, first in (("missed", "2"), ("blamed", "1–4")):
        _head, row = read_csv(client, address, key)
        assert [row[0], row[4], row[5]] == [first, "6", "6"]
        value, low, high = (float(cell) for cell in row[1:4])
        assert low < value < high
        assert value == pytest.approx(1 / 6)


@pytest.mark.fault
def test_page_reports_what_the_recount_corrected(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 3)
    assert "data-corrected-counts" not in client.get(address).content.decode()
    for n_corrected in (0, 3):
        if n_corrected:
            SettlementDay.objects.update(traces=F("traces") + 1)
            ReportCount.objects.filter(pk=ReportCount.objects.earliest("pk").pk).update(readings=99)
        recount_job.enqueue_recounts(now=timezone.now())
        job = Job.objects.unfinished().get(kind=recount_job.KIND)
        assert runner.run_job(job.pk, recount_job.chunks) == JobState.DONE
        project_stats.compute_project_stats(project_id=cast.project.pk, now=timezone.now())
        assert f'data-corrected-counts="{n_corrected}"' in client.get(address).content.decode()


def test_shares_of_the_rater_model_are_formatted_like_all_shares(client: Client, cast: Personas, address: str) -> None:
    trace = factories.make_trace(cast.project)
    for rater in submitted_work.make_raters(cast.project, 2):
        submitted_work.submit_trace(rater, trace, [1, -1])
    project_stats.compute_project_stats(project_id=cast.project.pk, now=factories.NOW)  # nothing is settled yet
    RaterModelFit.objects.create(
        project=cast.project,
        basis=FitBasis.BLIND,
        number=1,
        made_at=factories.NOW,
        n_traces=1,
        n_readings=2,
        n_gold=100,
        n_accepted=60,
        rates={},
        hazards={},
        gap_before=0.156,
        gap_after=0.09,
        threshold=0.94,
        lower_bound=0.9,
    )
    html = client.get(address).content.decode()
    assert 'data-empty="confusion"' in html
    gap = html.partition("data-gap>")[2].partition("</span>")[0]
    threshold = html.partition("data-threshold>")[2].partition("</span>")[0]
    for text, values in ((gap, (0.156, 0.09)), (threshold, (0.94, 0.9))):
        assert all(number_format.format_share(value) in text for value in values)


def test_page_states_the_probability_from_which_the_model_settles(client: Client, cast: Personas, address: str) -> None:
    trace = factories.make_trace(cast.project)
    submitted_work.submit_trace(submitted_work.make_raters(cast.project, 1)[0], trace, [1, -1])
    project_stats.compute_project_stats(project_id=cast.project.pk, now=factories.NOW)
    checked = {"n_checked": 40, "checked_right": 40, "checked_expected": 38.0, "checked_deviation": 1.0}
    sizes = {"n_traces": 1, "n_readings": 2, "n_gold": 0, "rates": {}, "hazards": {}}
    RaterModelFit.objects.create(
        project=cast.project, basis=FitBasis.BLIND, number=1, made_at=factories.NOW, **sizes, **checked
    )
    html = client.get(address).content.decode()
    assert 'data-settles="model"' in html
    stated = html.partition("data-confident>")[2].partition("</span>")[0]
    assert number_format.format_share(redundancy.CONFIDENT) in stated


@pytest.mark.fault
def test_agreement_can_leave_raters_out_or_include_only_some(client: Client, cast: Personas, address: str) -> None:
    label_traces(cast, 4)
    one, two = Rater.objects.filter(project=cast.project, reports__isnull=False).distinct().order_by("pk")
    third = factories.make_rater(cast.project)
    trace = factories.make_trace(cast.project)
    for rater in (two, third):
        submitted_work.submit_trace(rater, trace, [1, 1, 1])
    submitted_work.refresh_quality(now=factories.NOW + dt.timedelta(hours=1))
    assert client.get(address).context["agreement"]["part"].estimates["exact"]["n"] == 5
    page = client.get(f"{address}?rater={one.pk}&choice=without")
    assert page.context["agreement"]["part"].estimates["exact"]["n"] == 1
    assert 'data-chosen="1"' in page.content.decode()
    page = client.get(f"{address}?rater={one.pk}&rater={two.pk}&choice=only")
    assert page.context["agreement"]["part"].estimates["exact"]["n"] == 4
    assert 'data-population="only"' in page.content.decode()
    shown = page.context["agreement"]["consensus"]
    assert (shown.n_affected, shown.n_compared, shown.n_same) == (1, 1, 1)
    page = client.get(f"{address}?rater={one.pk}&choice=without")
    shown = page.context["agreement"]["consensus"]
    assert shown.n_affected == shown.n_compared == shown.n_same + shown.n_changed + shown.n_undetermined > 0
    assert f'data-affected="{shown.n_affected}"' in page.content.decode()
    assert len(read_csv(client, address, "consensus", rater=str(one.pk), choice="without")) == 1 + len(shown.table.rows)
    program = api_clients.make_client(cast.engineer)
    api = reverse("api:agreement", args=[cast.project.slug])
    assert program.get(api).json()["n_traces"] == 5
    found = program.get(api, {"without": str(one.labeler)}).json()
    assert (found["n_traces"], found["without"]) == (1, [one.labeler])
    found = program.get(api, {"only": [str(one.labeler), str(two.labeler)]}).json()
    assert (found["n_traces"], found["without"]) == (4, [])
    assert program.get(api, {"only": str(one.labeler)}).json()["n_traces"] == 0
    for name in ("only", "without"):
        assert program.get(api, {name: "nobody"}).status_code == 422
