"""The report on clauses: agreement, clauses that nobody cites, contested ones, and what changed between versions."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotate import work_page
from labeling import assignments
from labeling.models import Project, Rater, Trace
from labeling.projects import lifecycle
from labeling.projects.clauses import parse_clauses
from labeling.quality import clause_report, new_submissions
from labeling.quality.clause_report import match_clauses
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import submitted_work
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
FIRST = "# Refunds\n\nA\n\n# Credit\n\nB\n\n# Tone\n\nC\n"
SECOND = "# Greeting\n\nD\n\n# Refunds\n\nA\n\n# Credit\n\nB, changed\n"


@pytest.fixture
def project() -> Project:
    project = factories.make_project(protocol="every_step", asks_clauses="optional")
    lifecycle.publish_guideline(project=project, body=FIRST, by=None, now=factories.NOW)
    return project


def rate(trace: Trace, rater: Rater, *steps: tuple[int, str]) -> None:
    """Let a rater submit ratings that cite clauses by their numbers."""
    assignment = factories.make_assignment(rater, trace, guideline=rater.project.guideline)
    client = WorkPageClient(assignment)
    clauses = {each["code"]: each for each in work_page.build_trace(assignment.pk)["clauses"]}
    for step, (rating, codes) in enumerate(steps):
        found = [clauses[code] for code in codes.split()]
        cited = [assignments.Citation(each["code"], each["digest"], each["version"]) for each in found]
        client.send(client.write(step, rating, citations=cited or None))
    assignments.submit(**client.place, now=factories.NOW, by=rater.user)


def publish_second(project: Project) -> None:
    lifecycle.publish_guideline(project=project, body=SECOND, by=None, now=factories.NOW)


@pytest.fixture
def cited(project: Project) -> Project:
    one, other = submitted_work.make_raters(project, 2)
    trace = factories.make_trace(project, ["One.", "Two.", "Three."])
    rate(trace, one, (-1, "1"), (1, "1 2"), (0, ""))
    rate(trace, other, (-1, "1"), (-1, "1"), (0, "2"))
    new_submissions.process_new_submissions(now=factories.NOW)
    submitted_work.refresh_quality(now=factories.NOW)
    return project


def test_citations_are_counted_by_clause(cited: Project) -> None:
    report = clause_report.build_clause_report(cited)
    assert (report.n_ratings, report.n_outdated) == (5, 0)
    first, second, third = report.clauses
    assert first[1:] == (3, 1, 2, 0, 1)
    assert second[1:] == (0, 2, 1, 1, 0)
    assert (third.n_cited, third.contested_share) == (0, None)
    assert [each.code for each in report.never_cited] == ["3"]
    assert [each.clause.code for each in report.most_contested] == ["2", "1"]
    assert report.agreement["n_paired"] == 2
    assert [(each.version, each.n_ratings, each.distance) for each in report.versions] == [(1, 5, None)]


def test_versions_are_compared(cited: Project) -> None:
    publish_second(cited)
    trace = factories.make_trace(cited, ["One."])
    for rater in Rater.objects.filter(project=cited).select_related("project__guideline", "user"):
        rate(trace, rater, (-1, "2"))
    new_submissions.process_new_submissions(now=factories.NOW)
    submitted_work.refresh_quality(now=factories.NOW)
    report = clause_report.build_clause_report(cited)
    assert (report.n_ratings, report.n_outdated) == (7, 2)
    found: Any = report.versions[1]
    assert (found.version, found.n_ratings, found.n_clauses) == (2, 2, 3)
    assert (found.added, found.removed, found.changed, found.renumbered) == (("1",), ("3",), ("3",), ("2", "3"))
    assert found.distance == pytest.approx(2 / 6)  # from 4 of 6 citations to 2 of 2


def test_a_clause_is_matched_by_text_then_title_then_number() -> None:
    matched = match_clauses(parse_clauses(FIRST), parse_clauses(SECOND))
    assert {code: clause.code for code, clause in matched.items()} == {"1": "2", "2": "3"}


def test_page_shows_the_report(client: Client, personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    client.force_login(personas.cast.lead)
    page = reverse("dashboard:clauses", args=[project.slug])
    assert 'data-empty="clauses"' in client.get(page).content.decode()
    lifecycle.publish_guideline(project=project, body=FIRST, by=None, now=factories.NOW)
    lifecycle.change_settings(project=project, by=None, now=factories.NOW, asks_clauses="all")
    shown = client.get(page).content.decode()
    assert 'data-statistic="clause"' in shown
    assert 'data-never="3"' in shown
    assert client.get(page, {"csv": "clauses"}).content.decode().count("\n") == 4
