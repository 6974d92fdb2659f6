"""Load submissions of traces as first-error reports, and select those that vote.

Only people who saw no scores vote. Machines and raters who saw scores ("assisted") do not.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson
from django.db.models import Q

import rawsql
from labeling.models import Assignment
from labeling.models.assignment import AssignmentPurpose, FinishReason, Population
from labeling.models.rater import RaterKind
from labeling.quality.posteriors import ObservedFirstError
from labeling.quality.redundancy import SubmittedVote

# Finished before the end of the trace: no error among the rated steps, and nothing known about the rest.
CENSORING_REASONS = (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM)
IS_ASSISTED = Q(is_assisted=True) | Q(rater__kind=RaterKind.MACHINE)
_REPORTS = rawsql.load_sql(__file__, "first_errors.sql")


class RevisionReport(NamedTuple):
    """One revision of one assignment. `position` is the first step whose own text was rated negative."""

    assignment_id: int
    revision: int
    position: int | None
    n_passed: int  # rated steps before it, or all rated steps
    finish_reason: str | None

    @property
    def is_censored(self) -> bool:
        return self.position is None and self.finish_reason in CENSORING_REASONS


def load_revision_reports(revisions: Sequence[tuple[int, int]]) -> list[RevisionReport]:
    """Return a report for each submitted (assignment, revision), ordered by both."""
    if not revisions:
        return []
    parameters = {"revisions": orjson.dumps([list(pair) for pair in revisions]).decode()}
    return list(itertools.starmap(RevisionReport, rawsql.fetch_rows(_REPORTS, parameters)))


@dataclass
class SubmittedReport:
    """The latest revision of one submitted assignment."""

    assignment_id: int
    rater_id: int
    revision: int
    report: RevisionReport
    is_blind: bool = True  # by a person who saw no scores
    is_extra: bool = False  # submitted without a free slot

    @property
    def vote(self) -> SubmittedVote:
        has_bad_problem = self.report.finish_reason == FinishReason.BAD_PROBLEM
        return SubmittedVote(self.report.position, self.report.is_censored, has_bad_problem, self.is_extra)

    def as_observation(self, trace_id: int) -> ObservedFirstError:
        return ObservedFirstError(
            trace_id, self.rater_id, self.report.position, self.report.n_passed, self.report.is_censored
        )


def load_submitted_reports(trace_ids: Sequence[int]) -> dict[int, list[SubmittedReport]]:
    """Return the submissions of each trace in the order in which they were submitted."""
    rows = (
        Assignment.objects.submitted()
        .filter(trace_id__in=trace_ids, purpose=AssignmentPurpose.WORK)
        .order_by("submitted_at", "pk")
        .values_list("trace_id", "pk", "rater_id", "submitted_revision", "is_assisted", "rater__kind", "population")
    )
    latest = [(pk, revision) for _trace, pk, _rater, revision, *_rest in rows]
    reports = {report.assignment_id: report for report in load_revision_reports(latest)}
    by_trace: dict[int, list[SubmittedReport]] = {trace_id: [] for trace_id in trace_ids}
    for trace_id, pk, rater_id, revision, is_assisted, kind, population in rows:
        is_blind = not is_assisted and kind != RaterKind.MACHINE
        rater = rater_id if is_blind else assisted_rater_id(rater_id, kind)
        is_extra = population == Population.EXTRA
        by_trace[trace_id].append(SubmittedReport(pk, rater, revision, reports[pk], is_blind, is_extra))
    return by_trace


def select_voting(by_trace: Mapping[int, list[SubmittedReport]]) -> dict[int, list[SubmittedReport]]:
    return {
        trace: [submission for submission in submissions if submission.is_blind]
        for trace, submissions in by_trace.items()
    }


def load_assisted_observations(*, project_id: int, limit: int) -> list[ObservedFirstError]:
    """Return the latest assisted submissions of a project."""
    rows = (
        Assignment.objects.submitted()
        .filter(IS_ASSISTED, purpose=AssignmentPurpose.WORK, project=project_id)
        .order_by("-pk")
        .values_list("pk", "submitted_revision", "trace_id", "rater_id", "rater__kind")[:limit]
    )
    by_assignment = {pk: (trace, assisted_rater_id(rater, kind)) for pk, _revision, trace, rater, kind in rows}
    reports = load_revision_reports([(pk, revision) for pk, revision, *_rest in rows])
    return [
        ObservedFirstError(*by_assignment[report.assignment_id], report.position, report.n_passed, report.is_censored)
        for report in reports
    ]


def assisted_rater_id(rater_id: int, kind: str) -> int:
    """Return another id for a person who saw scores: their error rates differ from when they label blind."""
    return rater_id if kind == RaterKind.MACHINE else -rater_id
