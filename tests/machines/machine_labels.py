"""Labels of machines and people on traces with three steps."""

from labeling.assignments.machine_submissions import MachineRating, MachineSubmission, save_machine_submissions
from labeling.models import Rater, Trace
from labeling.quality import resolve
from tests import factories
from tests.labeling.quality import submitted_work


def list_ratings(first_error: int | None, n_steps: int = 3) -> list[int]:
    """Return the ratings up to the first error."""
    return [1] * n_steps if first_error is None else [1] * first_error + [-1]


def label_trace(machine: Rater, trace: Trace, first_error: int | None) -> None:
    ratings = [MachineRating(position, rating) for position, rating in enumerate(list_ratings(first_error))]
    save_machine_submissions(rater=machine, submitted=[MachineSubmission(trace.pk, ratings)], now=factories.NOW)
    resolve.resolve_due_traces(now=factories.NOW)


def label_by_people(trace: Trace, first_error: int | None) -> None:
    """Settle the trace by two people."""
    for rater in submitted_work.make_raters(trace.project, 2):
        submitted_work.submit_trace(rater, trace, list_ratings(first_error))
    resolve.resolve_due_traces(now=factories.NOW)
