"""What was read of traces, by whom, and which of it has a vote: machines and whoever saw scores beforehand have none.
Reads only."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson
from django.db.models import Q, QuerySet

import rawsql
from labeling.models import Assignment
from labeling.models.assignment import AssignmentPurpose, FinishReason, Population
from labeling.models.rater import RaterKind
from labeling.quality.posteriors import ObservedFirstError
from labeling.quality.redundancy import ReadingVote

# Read from ratings where submissions saw the first error, for gold and consensus alike.


# These ended before the trace did: no error among what was rated, and nothing is known beyond.
CENSORING_REASONS = (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM)


class RevisionReport(NamedTuple):
    """One revision of one assignment. `position` is that of the first step whose own text was rated negative."""

    assignment_id: int
    revision: int
    position: int | None
    n_passed: int  # rateable steps before it that were rated, or all that were rated where there is none
    finish_reason: str | None

    @property
    def is_censored(self) -> bool:
        return self.position is None and self.finish_reason in CENSORING_REASONS


def load_revision_reports(revisions: Sequence[tuple[int, int]]) -> list[RevisionReport]:
    """Return a report for each (assignment, revision) that was submitted, in the order of both."""
    if not revisions:
        return []
    asked = orjson.dumps([list(pair) for pair in revisions]).decode()
    return list(itertools.starmap(RevisionReport, rawsql.fetch_rows(_REPORTS, {"revisions": asked})))


_REPORTS = rawsql.load_sql(__file__, "first_errors.sql")


# Readings that saw scores, and those of machines: they have no vote, and no place in what is learned of people. Reads


IS_ASSISTED = Q(is_assisted=True) | Q(rater__kind=RaterKind.MACHINE)


def assisted_rater_id(rater_id: int, kind: str) -> int:
    """Whoever saw scores errs otherwise than blind: under another number they are another rater."""
    return rater_id if kind == RaterKind.MACHINE else -rater_id


def load_assisted_readings(*, project_id: int, limit: int) -> list[ObservedFirstError]:
    """The latest of a project."""
    rows = _assisted_assignments().filter(project=project_id).order_by("-pk")
    columns = ("pk", "submitted_revision", "trace_id", "rater_id", "rater__kind")
    found = {
        pk: (revision, trace, assisted_rater_id(rater, kind))
        for pk, revision, trace, rater, kind in rows.values_list(*columns)[:limit]
    }
    told = load_revision_reports([(pk, one[0]) for pk, one in found.items()])
    return [
        ObservedFirstError(*found[each.assignment_id][1:], each.position, each.n_passed, each.is_censored)
        for each in told
    ]


def _assisted_assignments() -> QuerySet[Assignment]:
    return Assignment.objects.submitted().filter(IS_ASSISTED, purpose=AssignmentPurpose.WORK)


@dataclass
class SubmittedReading:
    """One submitted reading of a trace, by its latest revision."""

    assignment_id: int
    rater_id: int
    revision: int
    report: RevisionReport
    is_blind: bool = True  # of a person who saw no score: these alone have a vote
    is_extra: bool = False  # came when no slot was free

    @property
    def said(self) -> ReadingVote:
        has_bad_problem = self.report.finish_reason == FinishReason.BAD_PROBLEM
        return ReadingVote(self.report.position, self.report.is_censored, has_bad_problem, self.is_extra)

    def seen(self, trace_id: int) -> ObservedFirstError:
        return ObservedFirstError(
            trace_id, self.rater_id, self.report.position, self.report.n_passed, self.report.is_censored
        )


def select_voting_readings(every: Mapping[int, list[SubmittedReading]]) -> dict[int, list[SubmittedReading]]:
    return {trace: [each for each in of_trace if each.is_blind] for trace, of_trace in every.items()}


def load_readings(trace_ids: Sequence[int]) -> dict[int, list[SubmittedReading]]:
    """Of each trace, in the order of their submissions."""
    rows = (
        Assignment.objects.submitted()
        .filter(trace_id__in=trace_ids, purpose=AssignmentPurpose.WORK)
        .order_by("submitted_at", "pk")
        .values_list("trace_id", "pk", "rater_id", "submitted_revision", "is_assisted", "rater__kind", "population")
    )
    told = load_revision_reports([(pk, revision) for _trace, pk, _rater, revision, *_whose in rows])
    reports = {each.assignment_id: each for each in told}
    by_trace: dict[int, list[SubmittedReading]] = {trace_id: [] for trace_id in trace_ids}
    for trace_id, pk, rater_id, revision, is_assisted, kind, population in rows:
        is_blind = not is_assisted and kind != RaterKind.MACHINE
        rater = rater_id if is_blind else assisted_rater_id(rater_id, kind)
        is_extra = population == Population.EXTRA
        by_trace[trace_id].append(SubmittedReading(pk, rater, revision, reports[pk], is_blind, is_extra))
    return by_trace
