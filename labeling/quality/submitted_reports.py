"""Load submissions of traces as first-error reports, without those that a lead has set aside.

Only people who saw no scores vote. Machines and raters who saw scores ("assisted") do not.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import orjson
from django.db.models import Q

import rawsql
from labeling.models import Assignment
from labeling.models.assignment import AssignmentPurpose, FinishReason, Population
from labeling.models.rater import RaterKind

# Finished before the end of the trace: no error among the rated steps, and nothing known about the rest.
CENSORING_REASONS = (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM)
_SUBMITTED = """
SELECT a.submitted_revision, a.population, a.id, r.revision, a.trace_id, a.rater_id, r.first_error, r.n_passed,
  r.is_censored, r.has_bad_problem
FROM labeling_assignment a LEFT JOIN labeling_firsterrorreport r ON r.assignment_id = a.id
WHERE a.trace_id = ANY (%(traces)s::bigint[])
  AND a.purpose = 'work' AND a.state = 'submitted' AND a.set_aside_id IS NULL
ORDER BY a.submitted_at, a.id"""
_REPORTS = rawsql.load_sql(__file__, "first_errors.sql")


class RevisionReport(NamedTuple):
    """One revision of one assignment. `position` is the first step whose own text was rated negative."""

    assignment_id: int
    revision: int
    trace_id: int
    rater_id: int  # negative for a person who saw scores: their error rates differ from when they label blind
    position: int | None
    n_passed: int  # rated steps before it, or all rated steps
    is_censored: bool = False
    has_bad_problem: bool = False
    is_blind: bool = True  # by a person who saw no scores
    is_extra: bool = False  # submitted without a free slot
    is_stored: bool = False  # as a `FirstErrorReport`


def load_revision_reports(revisions: Sequence[tuple[int, int]]) -> list[RevisionReport]:
    """Return a report for each submitted (assignment, revision), ordered by both."""
    if not revisions:
        return []
    parameters = {"revisions": orjson.dumps([list(pair) for pair in revisions]).decode()}
    return list(itertools.starmap(RevisionReport, rawsql.fetch_rows(_REPORTS, parameters)))


def load_submitted_reports(trace_ids: Sequence[int]) -> dict[int, list[RevisionReport]]:
    """Return the latest revisions of each trace's submissions that count, in the order in which they were submitted.

    A revision never changes, so a stored report is not derived from its ratings again.
    """
    rows = rawsql.fetch_rows(_SUBMITTED, {"traces": list(trace_ids)})
    missing = [(pk, revision) for revision, _, pk, stored, *_ in rows if stored != revision]
    derived = {report.assignment_id: report for report in load_revision_reports(missing)}
    by_trace: dict[int, list[RevisionReport]] = {trace_id: [] for trace_id in trace_ids}
    for revision, population, *columns in rows:
        if columns[1] == revision:
            report = RevisionReport._make((*columns, True, population == Population.EXTRA, True))
        else:
            report = derived[columns[0]]
        by_trace[report.trace_id].append(report)
    return by_trace


def load_assisted_reports(*, project_id: int, limit: int) -> list[RevisionReport]:
    """Return the latest assisted submissions of a project."""
    is_assisted = Q(is_assisted=True) | Q(rater__kind=RaterKind.MACHINE)
    work = Assignment.objects.counted().filter(is_assisted, purpose=AssignmentPurpose.WORK, project=project_id)
    return load_revision_reports(list(work.order_by("-pk").values_list("pk", "submitted_revision")[:limit]))
