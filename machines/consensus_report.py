"""What the consensus filter keeps: the traces for which two machines name the same first error, and how often people
agree with what is kept and with what is dropped.

Human precision is the share of the labels of a machine that equal the consensus of people, among traces that people
have resolved. Intervals are by problem, because traces of one problem share their difficulty.

Z. Zhang et al. (2025), "The lessons of developing process reward models in mathematical reasoning", arXiv:2501.07301,
keep what Monte Carlo and a judge agree on.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q

from jobs import paging
from labeling.models import Assignment, Consensus, Project, Rater, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterKind
from labeling.quality import tallies
from labeling.quality.settlements import RESOLVED_STATES
from labeling.quality.submitted_reports import load_revision_reports
from machines import judges
from stats import estimation
from stats.estimates import Estimate

_NO_ERROR = -1


class ComparedTrace(NamedTuple):
    """The first errors of one trace; -1 is no error. `human` is None without a consensus of people."""

    problem: int
    first: int
    second: int
    human: int | None


@dataclass(frozen=True)
class ConsensusReport:
    """`kept` is the share of traces on which both machines agree. `precision_kept` is about their common label,
    `first_dropped` and `second_dropped` about the labels of each machine where they disagree."""

    n_traces: int
    n_kept: int
    n_kept_with_people: int
    n_dropped_with_people: int
    kept: Estimate
    precision_kept: Estimate
    first_dropped: Estimate
    second_dropped: Estimate
    first_overall: Estimate
    second_overall: Estimate


def list_machines(project: Project) -> list[Rater]:
    """Return the machines that label in a project, from here and from files."""
    has_labels = Exists(Assignment.objects.counted().filter(rater=OuterRef("pk"), purpose=AssignmentPurpose.WORK))
    machines = Rater.objects.filter(has_labels, project=project, kind=RaterKind.MACHINE)
    return list(machines.order_by("machine"))


def find_machine(project: Project, name: str) -> Rater | None:
    """Return a machine by its label such as "critic 1", by its name, or by its pseudonym in datasets."""
    (name,) = judges.replace_labels(project, [name])
    machines = Rater.objects.filter(Q(machine=name) | Q(labeler=name), project=project, kind=RaterKind.MACHINE)
    return machines.first()


def compare_machines(first: Rater, second: Rater) -> ConsensusReport:
    return report_on_traces(_load_compared(first, second))


def _load_compared(first: Rater, second: Rater) -> list[ComparedTrace]:
    own, others = _load_errors(first), _load_errors(second)
    people = _load_human_errors(first.project_id)
    problems = Trace.objects.filter(project=first.project_id).values_list("pk", "problem")
    return [
        ComparedTrace(problem, own[trace], others[trace], people.get(trace))
        for trace, problem in problems
        if trace in own and trace in others
    ]


def _load_errors(machine: Rater) -> dict[int, int]:
    """Return the first error of each trace that the machine labeled to its end or to an error."""
    work = Assignment.objects.counted().filter(rater=machine, purpose=AssignmentPurpose.WORK)
    revisions = list(work.values_list("pk", "submitted_revision"))
    reports = (report for part in paging.split(revisions) for report in load_revision_reports(part))
    return {
        report.trace_id: _number(report.position)
        for report in reports
        if not report.is_censored and (report.n_passed or report.position is not None)
    }


def _load_human_errors(project_id: int) -> dict[int, int]:
    """Return the first error of the current consensus of each resolved trace."""
    rows = Consensus.objects.filter(
        project=project_id,
        trace__settlement__state__in=RESOLVED_STATES,
        revision=F("trace__settlement__consensus_revision"),
    )
    return {trace: _number(error) for trace, error in rows.values_list("trace", "first_error")}


def _number(error: int | None) -> int:
    return _NO_ERROR if error is None else error


def report_on_traces(traces: Sequence[ComparedTrace]) -> ConsensusReport:
    kept = [each for each in traces if each.first == each.second]
    known = [each for each in traces if each.human is not None]
    known_kept = [each for each in known if each.first == each.second]
    dropped = [each for each in known if each.first != each.second]
    return ConsensusReport(
        n_traces=len(traces),
        n_kept=len(kept),
        n_kept_with_people=len(known_kept),
        n_dropped_with_people=len(dropped),
        kept=_estimate(traces, lambda each: each.first == each.second),
        precision_kept=_estimate(known_kept, lambda each: each.first == each.human),
        first_dropped=_estimate(dropped, lambda each: each.first == each.human),
        second_dropped=_estimate(dropped, lambda each: each.second == each.human),
        first_overall=_estimate(known, lambda each: each.first == each.human),
        second_overall=_estimate(known, lambda each: each.second == each.human),
    )


def describe_report(report: ConsensusReport) -> dict[str, Any]:
    """Return the report as plain JSON."""
    return {
        each.name: tallies.estimate_row(value) if isinstance(value, Estimate) else value
        for each in fields(report)
        for value in [getattr(report, each.name)]
    }


def _estimate(traces: Sequence[ComparedTrace], is_hit: Callable[[ComparedTrace], bool]) -> Estimate:
    counts: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for each in traces:
        counts[each.problem][0] += is_hit(each)
        counts[each.problem][1] += 1
    return estimation.estimate_share_by_problem({problem: (hits, n) for problem, (hits, n) in counts.items()})
