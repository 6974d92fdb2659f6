"""A project in which a machine's labels are shown to some raters."""

import datetime as dt
from collections.abc import Sequence

from labeling import assignments
from labeling.models import Assignment, Project, Rater, SuggestionPlan, Trace
from labeling.projects import suggestions
from labeling.quality import new_submissions
from labeling.queue import exposures
from tests import factories
from tests.factories import NOW
from tests.labeling.assignments.clients import WorkPageClient
from tests.machines import machine_labels


def start(project: Project, *, reveal: float = 0.0, suggest: float = 0.0, seed: str = "seed") -> SuggestionPlan:
    machine = project.raters.filter(kind="machine").first() or factories.make_machine_rater(project)
    return suggestions.start_suggestions(
        project=project, machine=machine, reveal_share=reveal, suggest_share=suggest, by=None, now=NOW, seed=seed
    )


def assign(plan: SuggestionPlan, rater: Rater, trace: Trace, first_error: int | None, **fields: str) -> Assignment:
    """Give a trace to a rater, with the machine's label on it, and draw the arm."""
    if not Assignment.objects.filter(rater=plan.machine, trace=trace).exists():
        machine_labels.label_by_machine(plan.machine, {trace: first_error})
    assignment = factories.make_assignment(rater, trace, **fields)
    exposures.draw_exposure(plan_id=plan.pk, assignment_id=assignment.pk, rater_id=rater.pk, trace_id=trace.pk, now=NOW)
    assignment.refresh_from_db()
    return assignment


def find_rater(plan: SuggestionPlan, trace: Trace, arm: str) -> Rater:
    """Return a new rater to whom this arm is drawn for the trace."""
    while True:
        rater = factories.make_rater(plan.project)
        if exposures.choose_arm(plan, exposures.draw_number(plan.seed, rater.pk, trace.pk))[0] == arm:
            return rater


def submit(assignment: Assignment, ratings: Sequence[int], *, now: dt.datetime = NOW) -> Assignment:
    client = WorkPageClient(assignment)
    client.rate(ratings, now=now)
    assignments.submit(**client.place, now=now, by=assignment.rater.user)
    new_submissions.process_new_submissions(now=now)
    assignment.refresh_from_db()
    return assignment


def reveal_and_change(assignment: Assignment, step: int, first: int, final: int) -> None:
    """Rate the steps up to this one as right, change its rating after its label was shown, and submit."""
    client = WorkPageClient(assignment)
    client.rate([1] * step + [first])
    assignments.reveal_label(
        assignment_id=assignment.pk, rater_id=assignment.rater_id, step=step, rating=first, now=NOW
    )
    client.send(client.write(step, final))
    assignments.submit(**client.place, now=NOW, by=assignment.rater.user)
    new_submissions.process_new_submissions(now=NOW)
