"""Traces with submissions, made by the same calls as in real work."""

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from typing import Any

from labeling import assignments
from labeling.models import Assignment, Project, Rater, Trace
from labeling.quality import new_submissions, project_stats, resolve
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient


def submit_trace(
    rater: Rater, trace: Trace, ratings: Sequence[int], *, now: dt.datetime = factories.NOW, **fields: Any
) -> Assignment:
    """Open the trace as this rater, rate its own steps from the first on, and submit."""
    assignment = factories.make_assignment(rater, trace, **fields)
    client = WorkPageClient(assignment)
    client.rate(ratings, now=now)
    assignments.submit(**client.place, now=now, by=rater.user)
    new_submissions.process_new_submissions(now=now)
    assignment.refresh_from_db()
    return assignment


def give_up(rater: Rater, trace: Trace, ratings: Sequence[int], **fields: Any) -> Assignment:
    assignment = factories.make_assignment(rater, trace, **fields)
    client = WorkPageClient(assignment)
    client.rate(ratings)
    assignments.give_up(**client.place, reason="I cannot tell.", now=factories.NOW, by=rater.user)
    new_submissions.process_new_submissions(now=factories.NOW)
    return assignment


def report_problem(rater: Rater, trace: Trace) -> None:
    client = WorkPageClient(factories.make_assignment(rater, trace))
    assignments.report_problem(**client.place, reason="There is no figure.", now=factories.NOW, by=rater.user)
    new_submissions.process_new_submissions(now=factories.NOW)


def refresh_quality(*, now: dt.datetime) -> None:
    """Do what the schedule does every few seconds: settle due traces, then compute stale statistics."""
    resolve.resolve_due_traces(now=now)
    for project_id in project_stats.find_stale_projects(now=now):
        project_stats.refresh_project_stats(project_id=project_id, now=now)


def correct_step(
    assignment: Assignment,
    step: int,
    rating: int,
    *,
    more: Mapping[int, int] | None = None,
    now: dt.datetime = factories.NOW,
) -> None:
    """Submit a second revision in which one step has another rating, and other steps too if they must."""
    place = {"assignment_id": assignment.pk, "rater_id": assignment.rater_id, "now": now, "by": assignment.rater.user}
    assignments.reopen_submission(**place)  # type: ignore[arg-type]  # passed on
    client = WorkPageClient(assignment, "later")
    client.seen = Assignment.objects.get(pk=assignment.pk).version
    others = [client.write(each, said) for each, said in (more or {}).items()]
    client.send(client.write(step, rating), *others, now=now)
    assignments.submit(**client.place, now=now, by=assignment.rater.user)
    new_submissions.process_new_submissions(now=now)


def project_with_two_submissions() -> Project:
    """Create three raters, and six problems of two domains with two traces each; every trace is labeled twice."""
    dice = random.Random(3)
    project = factories.make_project()
    everybody = make_raters(project, 3)
    for number in range(6):
        problem = factories.make_problem(project, domain="algebra" if number % 2 else "geometry")
        for _ in range(2):
            trace = factories.make_trace(project, ["One.", "Two.", "Three."], problem=problem)
            for rater in dice.sample(everybody, 2):
                said = [dice.choice([1, 1, 1, 0, -1]) for _ in range(3)]
                submit_trace(rater, trace, said[: said.index(-1) + 1] if -1 in said else said)
    return project


def make_raters(project: Project, number: int) -> list[Rater]:
    return [factories.make_rater(project) for _ in range(number)]
