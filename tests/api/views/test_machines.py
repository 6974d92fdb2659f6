"""Passports and licenses of machines in the API."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs import runner
from jobs.models import Job
from labeling.quality import resolve
from machines import licenses, passports
from tests import factories
from tests.api import api_clients
from tests.machines import machine_labels
from tests.machines.test_licenses import queue_traces
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


def address(personas: LoggedInPersonas, name: str, **arguments: Any) -> str:
    return reverse(f"api:{name}", kwargs={"slug": personas.cast.project.slug, **arguments})


def post(program: Client, url: str, data: dict[str, Any]) -> Any:
    return program.post(url, json.dumps(data), content_type="application/json")


@pytest.mark.fault
def test_program_issues_a_passport_and_a_lead_licenses_the_machine(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    machine = factories.make_machine_rater(project)
    machine_labels.label_by_machine(machine, dict.fromkeys(queue_traces(project, 4)))
    engineer, lead = (api_clients.make_client(getattr(personas.cast, name)) for name in ("engineer", "lead"))
    (listed,) = engineer.get(address(personas, "machines")).json()
    assert listed == {"id": machine.pk, "machine": machine.machine}
    passport = address(personas, "passport", rater=machine.pk)
    assert engineer.get(passport).status_code == 422
    job = post(engineer, passport, {"people": "crowd"})
    assert job.status_code == 202
    assert runner.run_job(job.json()["job"], passports.run_passport_job) == "done"
    assert Job.objects.get(pk=job.json()["job"]).failure == ""
    read = engineer.get(passport).json()
    assert (read["epsilon"], read["content"]["n_judged"], read["expired_because"]) == (0.1, 4, "")

    machine_labels.make_passport(machine)
    stratum = {"domain": "", "shortest": 1, "longest": 4, "says_error": False, "may_settle": True}
    granted = address(personas, "licenses", rater=machine.pk)
    assert post(engineer, granted, stratum).status_code == 403
    assert post(lead, granted, {**stratum, "promised": 0.95}).status_code == 422
    license = post(lead, granted, {**stratum, "retest_share": 0.05}).json()
    assert (license["promised"], license["ended_at"]) == (0.9, None)
    licenses.apply_licenses(now=factories.NOW)
    resolve.resolve_due_traces(now=factories.NOW)
    results = engineer.get(address(personas, "assisted_results")).json()
    assert {(each["license"], each["first_error"], each["n_people"]) for each in results} == {(license["id"], None, 0)}
    after = engineer.get(address(personas, "assisted_results"), {"after": results[0]["trace"]}).json()
    assert after == results[1:]
    ended = post(lead, address(personas, "revoke_license", license=license["id"]), {"returns_traces": True})
    assert ended.json()["withdrawn"] >= len(results)
    assert engineer.get(address(personas, "assisted_results")).json() == []
    assert [each["ended_because"] for each in engineer.get(granted).json()] == ["revoked"]
