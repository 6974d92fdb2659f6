"""What was read of traces, by whom, and which of it has a vote: machines and whoever saw scores beforehand have none.
Reads only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labeling.models import Assignment
from labeling.models.assignment import FinishReason, Population, Purpose
from labeling.models.rater import RaterKind
from labeling.quality import assistance, first_errors
from labeling.quality.posteriors import Seen
from labeling.quality.redundancy import Said


@dataclass
class Reading:
    """One submitted reading of a trace, by its latest revision."""

    assignment_id: int
    rater_id: int
    revision: int
    report: first_errors.Report
    is_blind: bool = True  # of a person who saw no score: these alone have a vote
    is_extra: bool = False  # came when no slot was free

    @property
    def said(self) -> Said:
        has_bad_problem = self.report.finish_reason == FinishReason.BAD_PROBLEM
        return Said(self.report.position, self.report.is_censored, has_bad_problem, self.is_extra)

    def seen(self, trace_id: int) -> Seen:
        return Seen(trace_id, self.rater_id, self.report.position, self.report.n_passed, self.report.is_censored)


def with_a_vote(every: Mapping[int, list[Reading]]) -> dict[int, list[Reading]]:
    return {trace: [each for each in of_trace if each.is_blind] for trace, of_trace in every.items()}


def every(trace_ids: Sequence[int]) -> dict[int, list[Reading]]:
    """Of each trace, in the order of their submissions."""
    rows = (
        Assignment.objects.submitted()
        .filter(trace_id__in=trace_ids, purpose=Purpose.WORK)
        .order_by("submitted_at", "pk")
        .values_list("trace_id", "pk", "rater_id", "submitted_revision", "is_assisted", "rater__kind", "population")
    )
    told = first_errors.of_revisions([(pk, revision) for _trace, pk, _rater, revision, *_whose in rows])
    reports = {each.assignment_id: each for each in told}
    by_trace: dict[int, list[Reading]] = {trace_id: [] for trace_id in trace_ids}
    for trace_id, pk, rater_id, revision, is_assisted, kind, population in rows:
        is_blind = not is_assisted and kind != RaterKind.MACHINE
        rater = rater_id if is_blind else assistance.rater_of(rater_id, kind)
        is_extra = population == Population.EXTRA
        by_trace[trace_id].append(Reading(pk, rater, revision, reports[pk], is_blind, is_extra))
    return by_trace
