"""Licenses: when they are granted, what licensed machines settle, how re-tests end them, and separate results."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse

from events.models import Event
from labeling import queue
from labeling.models import Consensus, LicensedLabel, Project, QueueEntry, Settlement, Trace
from labeling.models.consensus import SettlementState
from labeling.models.licensed_label import LicensedRole
from labeling.models.queue import SamplingSource
from labeling.quality import project_stats, resolve
from machines import licenses, passports
from machines.license_strata import Stratum, build_strata
from machines.licenses import LicenseRefused
from machines.models import MachineLicense, MachinePassport
from machines.passport_data import PassportTrace
from machines.passport_models import LicenseEnd
from tests import factories
from tests.machines import machine_labels
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db

NO_ERROR = Stratum("", 1, 4, says_error=False)
LATER = factories.NOW + dt.timedelta(hours=1)


def queue_traces(project: Project, n: int) -> list[Trace]:
    traces = [factories.make_trace(project) for _ in range(n)]
    queue.enqueue(
        project_id=project.pk,
        arm=SamplingSource.UNIFORM,
        trace_ids=[trace.pk for trace in traces],
        slots=project.overlap,
        now=factories.NOW,
    )
    return traces


def license_machine(project: Project, n: int = 40, **options: Any) -> tuple[MachineLicense, list[Trace]]:
    """Let a machine find no error in new traces, license it for such labels, and apply the license."""
    machine = factories.make_machine_rater(project)
    traces = queue_traces(project, n)
    machine_labels.label_by_machine(machine, dict.fromkeys(traces))
    passport = machine_labels.make_passport(machine)
    values = {"may_settle": True, "retest_share": 0.25, **options}
    row = licenses.grant_license(passport=passport, stratum=NO_ERROR, by=None, now=factories.NOW, **values)
    assert licenses.apply_licenses(now=factories.NOW) == n
    resolve.resolve_due_traces(now=factories.NOW)
    return row, traces


def list_traces(license: MachineLicense, role: LicensedRole) -> list[Trace]:
    return list(Trace.objects.filter(licensed_label__license=license.pk, licensed_label__role=role).order_by("pk"))


def count_open(traces: Sequence[Trace]) -> int:
    return QueueEntry.objects.open().filter(trace__in=traces).values("trace").distinct().count()


@pytest.mark.parametrize(
    ("passport", "options"),
    [
        ({"bound": 0.87}, {"may_settle": True}),  # below the promise
        ({"bound": None, "passes_test": False}, {"may_settle": False}),
        ({}, {"may_settle": True, "retest_share": 0.01}),
        ({}, {"may_settle": True, "promised": 0.5}),
    ],
)
def test_license_needs_evidence(passport: dict[str, Any], options: dict[str, Any]) -> None:
    row = machine_labels.make_passport(factories.make_machine_rater(factories.make_project()), **passport)
    with pytest.raises(LicenseRefused):
        licenses.grant_license(passport=row, stratum=NO_ERROR, by=None, now=factories.NOW, **options)
    assert not MachineLicense.objects.exists()


def test_license_needs_a_valid_passport_and_is_granted_once() -> None:
    passport = machine_labels.make_passport(factories.make_machine_rater(factories.make_project()))
    values: dict[str, Any] = {"stratum": NO_ERROR, "may_settle": True, "by": None, "now": factories.NOW}
    licenses.grant_license(passport=passport, **values)
    assert Event.objects.filter(what="machine_license.granted").count() == 1
    with pytest.raises(LicenseRefused):
        licenses.grant_license(passport=passport, **values)
    machine_labels.expire(passport)
    passport.refresh_from_db()
    with pytest.raises(LicenseRefused):
        licenses.grant_license(passport=passport, **{**values, "stratum": Stratum("", 1, 4, says_error=True)})


@pytest.mark.fault
def test_license_settles_traces_alone_and_sends_a_share_to_people() -> None:
    project = factories.make_project(overlap=2)
    row, traces = license_machine(project)
    settled, retests = list_traces(row, LicensedRole.SETTLE), list_traces(row, LicensedRole.RETEST)
    assert len(settled) + len(retests) == len(traces)
    assert 3 <= len(retests) <= 20  # 10 expected
    assert {trace.settlement.state for trace in settled} == {SettlementState.ASSISTED}
    assert count_open(settled) == 0
    assert count_open(retests) == len(retests)
    assert not Settlement.objects.filter(trace__in=retests).exists()
    # No consensus of people, and no dataset, contains a machine-assisted result.
    assert not Consensus.objects.exists()
    results = licenses.list_results(project.pk)
    assert {(each.trace_id, each.settled_first_error, each.n_people) for each in results} == {
        (trace.pk, None, 0) for trace in settled
    }
    assert licenses.apply_licenses(now=LATER) == 0  # nothing is drawn twice


@pytest.mark.fault
def test_headline_does_not_change_with_licenses() -> None:
    project = factories.make_project(overlap=2)
    people = [factories.make_rater(project) for _ in range(2)]
    machine_labels.settle(people, factories.make_trace(project), 1)
    before = project_stats.build_stats_content(project_id=project.pk, now=factories.NOW)
    license_machine(project)
    after = project_stats.build_stats_content(project_id=project.pk, now=factories.NOW)
    unchanged = ("headline", "everything", "confusion", "settled_days", "raters", "bias", "pair")
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    assert after["settled"]["traces"] == before["settled"]["traces"] == 1


@pytest.mark.fault
def test_licensed_vote_saves_one_label_where_people_agree_with_it() -> None:
    project = factories.make_project(overlap=2, overlap_limit=3)
    row, _ = license_machine(project, n=8, may_settle=False)
    person = factories.make_rater(project)
    same, other = list_traces(row, LicensedRole.VOTE)[:2]
    machine_labels.settle([person], same, None)
    machine_labels.settle([person], other, 1)
    assert (same.settlement.state, same.settlement.reason) == (SettlementState.ASSISTED, "licensed_vote")
    assert count_open([same]) == 0
    assert LicensedLabel.objects.get(pk=same.pk).n_people == 1
    # People who disagree with the machine are asked again, and settle the trace without it.
    assert other.settlement.state == SettlementState.READING
    machine_labels.settle([factories.make_rater(project)], other, 1)
    other.settlement.refresh_from_db()
    assert other.settlement.state == SettlementState.SETTLED
    assert Consensus.objects.get().first_error == 1
    assert LicensedLabel.objects.get(pk=other.pk).settled_at is None


def test_person_who_disagrees_reopens_a_trace_that_a_machine_settled_alone() -> None:
    project = factories.make_project(overlap=2)
    row, _ = license_machine(project, n=8)
    trace = list_traces(row, LicensedRole.SETTLE)[0]
    machine_labels.settle([factories.make_rater(project)], trace, 1)  # had opened it before
    trace.settlement.refresh_from_db()
    assert trace.settlement.state == SettlementState.READING
    assert count_open([trace]) == 1
    assert trace.pk not in licenses.list_results(project.pk).values_list("trace", flat=True)


@pytest.mark.parametrize(("n_wrong", "is_active"), [(0, True), (4, False)])
@pytest.mark.fault
def test_retests_end_a_license(*, n_wrong: int, is_active: bool) -> None:
    project = factories.make_project(overlap=1)
    row, _ = license_machine(project, n=24, retest_share=0.5)
    person = factories.make_rater(project)
    retests = list_traces(row, LicensedRole.RETEST)[:6]
    for number, trace in enumerate(retests):
        machine_labels.settle([person], trace, 0 if number < n_wrong else None, now=LATER)
    assert licenses.load_retests(row) == [number >= n_wrong for number in range(len(retests))]
    licenses.apply_licenses(now=LATER)
    row.refresh_from_db()
    assert row.ended_because == ("" if is_active else LicenseEnd.RETESTS)


def test_expired_passport_ends_its_licenses_and_keeps_results() -> None:
    project = factories.make_project(overlap=2)
    row, _ = license_machine(project, n=8)
    n_settled = licenses.list_results(project.pk).count()
    machine_labels.expire(row.passport)
    traces = queue_traces(project, 3)
    machine_labels.label_by_machine(row.rater, dict.fromkeys(traces))
    assert licenses.apply_licenses(now=LATER) == 0
    row.refresh_from_db()
    assert row.ended_because == LicenseEnd.EXPIRED
    assert licenses.list_results(project.pk).count() == n_settled
    assert not LicensedLabel.objects.filter(trace__in=traces).exists()


def test_lead_revokes_a_license_and_returns_its_traces(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    row, _ = license_machine(project, n=8)
    settled = list_traces(row, LicensedRole.SETTLE)
    address = reverse("dashboard:revoke_license", args=[project.slug, row.pk])
    assert personas.client("engineer").post(address).status_code == 403
    assert personas.client("lead").post(address, {"returns": "1"}).status_code == 302
    row.refresh_from_db()
    assert row.ended_because == LicenseEnd.REVOKED
    resolve.resolve_due_traces(now=LATER)
    assert not licenses.list_results(project.pk).exists()
    assert count_open(settled) == len(settled)
    assert set(Settlement.objects.filter(trace__in=settled).values_list("state", flat=True)) == {"reading"}
    page = personas.client("lead").get(reverse("dashboard:machine", args=[project.slug, row.rater_id]))
    assert 'data-license="revoked"' in page.content.decode()


def test_lead_grants_a_license_on_the_page(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    machine = factories.make_machine_rater(project)
    passport = machine_labels.make_passport(machine, bound=0.92)
    address = reverse("dashboard:grant_license", args=[project.slug, machine.pk])
    form = {"stratum": "0", "may_settle": "True", "promised": "0.95", "retest_share": "0.2"}
    assert personas.client("lead").post(address, form).status_code == 422
    assert personas.client("lead").post(address, {**form, "promised": "0.9"}).status_code == 302
    row = MachineLicense.objects.get()
    assert (row.passport, row.granted_by, row.may_settle, row.retest_share) == (
        passport,
        personas.cast.lead,
        True,
        0.2,
    )
    page = personas.client("lead").get(reverse("dashboard:machine", args=[project.slug, machine.pk]))
    assert 'data-license="active"' in page.content.decode()


def test_evidence_counts_shared_blind_spots_of_gold() -> None:
    def make(number: int, **fields: Any) -> PassportTrace:
        return PassportTrace(number, number, "", 3, **fields)

    people = [make(number, end=3, reference=3) for number in range(200)]
    missed = {"end": 3, "accepted": {1}}
    gold = [
        make(300, **missed, gold_answers=[3, 3, 1]),  # people miss it too
        make(301, **missed, gold_answers=[1, 1]),
        make(302, **missed),  # nobody answered
        *(make(310 + number, end=3, accepted={3}) for number in range(60)),
    ]
    (found,) = build_strata([*people, *gold], dict.fromkeys(range(400), 1.0))
    assert (found["n_people"], found["n_gold"], found["agreement"]) == (200, 63, 1.0)
    assert found["shared"] == pytest.approx(2 / 63)


@pytest.mark.fault
def test_command_checks_and_writes_results(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project = factories.make_project(overlap=2)
    row, _ = license_machine(project, n=6)
    out = tmp_path / "assisted.jsonl"
    call_command("machine_rater", "results", project=project.slug, out=str(out))
    assert len(out.read_text().splitlines()) == licenses.list_results(project.pk).count()
    call_command("machine_rater", "check", project=project.slug)
    call_command("machine_rater", "revoke", project=project.slug, license=row.pk, return_traces=True)
    assert not licenses.list_results(project.pk).exists()
    call_command("machine_rater", "passport", project=project.slug, machine="judge")
    assert MachinePassport.objects.valid().get(rater=row.rater).content["n_judged"] == 6
    assert passports.find_valid_passport(row.rater) is not None
    call_command("machine_rater", "list", project=project.slug)
    assert '"ended_because": "revoked"' in capsys.readouterr().out
