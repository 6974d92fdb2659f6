"""What each kind of notice contains: made by the real functions, and described in the guide."""

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.models import User
from events.models import Event
from exports.models import Delivery
from jobs import control, runner
from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import JobProgress
from labeling import assignments, raters
from labeling.models import Project, Rater
from labeling.models.suggestion import SuggestionEnd
from labeling.projects import budgets, lifecycle, suggestions
from machines import licenses, passports
from machines.license_strata import Stratum
from machines.passport_models import LicenseEnd
from notices import kinds, outbox, subscriptions
from notices.models import Notice
from people import members
from people.models import Role
from prm import canaries, generations
from prm.evaluation.gate import Verdict
from prm.models import Generation
from tests import factories
from tests.conventions.rule import text_of
from tests.exports import snapshot_builder
from tests.labeling import suggested_project
from tests.labeling.quality import submitted_work
from tests.machines import judged_project, machine_labels

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def pause_rater(project: Project, lead: User, folder: Path) -> None:
    user = factories.make_user()
    members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=NOW)
    raters.pause_rater(rater=Rater.objects.get(user=user), reason="Too fast.", by=None, now=NOW)


def import_file(project: Project, lead: User, folder: Path) -> None:
    file = folder / "traces.jsonl"
    file.write_text(json.dumps({"problem": "1 + 1?", "steps": ["1 + 1 = 2."]}) + "\n")
    call_command("import_traces", str(file), project=project.slug, format="native", verbosity=0)


def build_snapshot(project: Project, lead: User, folder: Path) -> None:
    snapshot_builder.build_snapshot(project, "prm800k", name="one")


def judge_generation(project: Project, lead: User, folder: Path) -> None:
    generation = Generation.objects.create(project=project, number=3, started_at=NOW)
    generations.record_gate(
        generation=generation,
        verdict=Verdict.UNDECIDED,
        gate={"why": "35 pairs", "alarms": []},
        scored_with=None,
        n_traces=0,
        now=NOW,
    )


def pause_judge(project: Project, lead: User, folder: Path) -> None:
    judged_project.add_traces(project, 1)
    judged_project.pause_run(judged_project.start_run(judged_project.make_judge(project)))


def spend(share: str) -> Callable[[Project, User, Path], None]:
    def run(project: Project, lead: User, folder: Path) -> None:
        Project.objects.filter(pk=project.pk).update(pay_per_hour=Decimal(36))
        project.refresh_from_db()
        rater = factories.make_rater(project)
        for _ in range(10):
            factories.make_submitted(rater, factories.make_trace(project), ms=10_000)
        budgets.set_budget(project=project, amount=Decimal(share), by=lead, now=NOW)
        budgets.report_budgets(now=NOW)

    return run


def ask_for_correction(project: Project, lead: User, folder: Path) -> None:
    rater, trace = factories.make_rater(project), factories.make_trace(project)
    made = submitted_work.submit_trace(rater, trace, [1, 1, 1])
    assignments.request_correction(assignment_id=made.pk, note="Look at step 2.", by=lead, now=NOW)


def fail_job(project: Project, lead: User, folder: Path) -> None:
    job = control.request_job(kind="x", subject=f"project:{project.pk}", by=lead, now=NOW)
    runner.run_job(job.pk, fail, clock=lambda: NOW)


def fail(job: Job) -> Iterator[JobProgress]:
    yield JobProgress(1)
    raise JobFailed("The disk is full.")


def expire_passport(project: Project, lead: User, folder: Path) -> None:
    machine_labels.make_passport(factories.make_machine_rater(project))
    lifecycle.publish_guideline(project=project, body="New.", by=lead, now=NOW)
    passports.check_passports(now=NOW + dt.timedelta(hours=1))


def end_license(project: Project, lead: User, folder: Path) -> None:
    passport = machine_labels.make_passport(factories.make_machine_rater(project))
    stratum = Stratum("", 1, 4, says_error=False)
    row = licenses.grant_license(passport=passport, stratum=stratum, may_settle=True, by=lead, now=NOW)
    licenses.end_license(license=row, because=LicenseEnd.REVOKED, by=lead, now=NOW)


def fool_new_version(project: Project, lead: User, folder: Path) -> None:
    groups = {"should_not_rise": {"is_easier": True}}
    report = {"set": 1, "comparison": {"before": "PRM 1 m", "is_easier": True, "groups": groups}}
    canaries.log_alarm(prm=judged_project.make_prm(project), report=report, now=NOW)


def stop_suggestions(project: Project, lead: User, folder: Path) -> None:
    plan = suggested_project.start(project, suggest=0.5)
    suggestions.stop_suggestions(plan=plan, because=SuggestionEnd.HARM, by=None, now=NOW)


CAUSES: dict[str, Callable[[Project, User, Path], None]] = {
    "rater.paused": pause_rater,
    "import.done": import_file,
    "snapshot.built": build_snapshot,
    "generation.judged": judge_generation,
    "judge_run.paused": pause_judge,
    "passport.expired": expire_passport,
    "canaries.easier_to_fool": fool_new_version,
    "machine_license.ended": end_license,
    "suggestions.stopped": stop_suggestions,
    "project.budget_warned": spend("1.20"),
    "project.budget_reached": spend("0.50"),
    "correction.asked": ask_for_correction,
    "job.failed": fail_job,
}


def test_every_kind_has_a_cause_here() -> None:
    assert set(CAUSES) == set(kinds.NOTICE_KINDS)


@pytest.mark.parametrize("kind", CAUSES)
def test_notice_has_the_documented_fields_and_leads_to_a_page(kind: str, tmp_path: Path, client: Client) -> None:
    project, lead = snapshot_builder.make_labeled_project(2), factories.make_user("lead")
    members.add_member(project=project, user=lead, role=Role.LEAD, now=NOW)
    address = "http://127.0.0.1:9/"
    subscriptions.create_webhook(project=project, address=address, kinds=list(kinds.NOTICE_KINDS), by=lead, now=NOW)
    CAUSES[kind](project, lead, tmp_path)
    outbox.make_notices(now=NOW)
    content = Notice.objects.get(kind=kind).content
    assert set(content["data"]) == set(documented_fields()[kind])
    assert None not in content["data"].values()
    assert kinds.write_text(content)
    client.force_login(lead)
    assert client.get(content["url"].removeprefix("http://127.0.0.1:8000")).status_code == 200


def test_failure_finds_the_project_of_what_the_job_works_on() -> None:
    project = snapshot_builder.make_labeled_project(1)
    snapshot = snapshot_builder.order_snapshot(project, "trl")
    delivery = Delivery.objects.create(snapshot=snapshot, destination="lake", address="s3://x", asked_at=NOW)
    generation = Generation.objects.create(project=project, number=1, started_at=NOW)
    subjects = [f"project:{project.pk}", f"snapshot:{snapshot.pk}", f"delivery:{delivery.pk}", generation.subject]
    found = [kinds.find_project_id(Event(what="job.failed", detail={"of": subject})) for subject in subjects]
    assert found == [project.pk] * 4
    assert kinds.find_project_id(Event(what="job.failed", detail={"of": ""})) is None


def documented_fields() -> dict[str, list[str]]:
    guide = text_of("docs/guides/notices.md")
    table = guide.partition("| type | `data` |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.*) \|$", table, re.M)
    return {kind: re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)", "", fields)) for kind, fields in rows}


def test_guide_lists_every_kind() -> None:
    assert set(documented_fields()) == {*kinds.NOTICE_KINDS, kinds.TEST_KIND}
    guide = text_of("docs/guides/notices.md")
    example: dict[str, Any] = json.loads(guide.partition("```json\n")[2].partition("```")[0])
    project = factories.make_project()
    test = {"id": 1, **kinds.describe_test(project, NOW.isoformat())}
    assert list(example) == list(test)
    assert test["url"].endswith(reverse("dashboard:notices", args=[project.slug]))
