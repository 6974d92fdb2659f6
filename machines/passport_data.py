"""Load the labels of one machine rater beside those of people, for its passport.

People are raters who saw no scores: members and imported labelers. The reference of a trace is its consensus, which
people alone made, or its hidden gold. Revisions after the first are left out, as in the headline agreement.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Exists, F, OuterRef, QuerySet

from jobs import paging
from labeling.models import Assignment, Gold, Judgment, Rater, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.rater import RaterKind
from labeling.quality import consensus, submitted_reports
from machines.models import JudgedTrace

MAX_TRACES = 5_000  # the newest ones that people labeled too, and as many of the others, in the order of their digests
_CHUNK = 500


class StepPair(NamedTuple):
    """The ratings of one step by the machine and by one person."""

    kind: str
    machine: int
    person: int


@dataclass
class PassportTrace:
    """One trace that the machine judged. `end` is its first error, the number of steps for none, and None if no answer
    could be read. `people` are ends of the people who labeled it, by rater; censored ones are in `censored`."""

    trace: int
    problem: int
    domain: str
    n_steps: int
    is_right: bool | None = None  # the final answer
    in_pool: bool = True  # one of the sample that represents all judged traces
    end: int | None = None
    confidence: float | None = None  # P(E) of `end`
    p_error: float | None = None  # 1 - P(no error)
    people: dict[int, int] = field(default_factory=dict)
    censored: dict[int, int] = field(default_factory=dict)
    given: Counter[int] = field(default_factory=Counter)  # ratings of steps by all people together
    reference: int | None = None  # the end of the consensus
    reference_labels: dict[int, int] = field(default_factory=dict)
    labels: dict[int, int] = field(default_factory=dict)  # of the machine, by position
    step_pairs: list[StepPair] = field(default_factory=list)
    accepted: set[int] = field(default_factory=set)  # ends, if the trace is hidden gold
    gold_answers: list[int] = field(default_factory=list)  # ends of people on hidden gold


def load_compared_traces(rater: Rater) -> list[PassportTrace]:
    """Return the newest traces that this machine judged, in the order of their ids."""
    traces = _load_judged(rater)
    for ids in paging.split(sorted(traces), _CHUNK):
        part = {pk: traces[pk] for pk in ids}
        _add_machine(rater, part)
        _add_people(part)
        _add_references(rater.project_id, part)
        _add_gold(part)
    return [traces[pk] for pk in sorted(traces)]


def _load_judged(rater: Rater) -> dict[int, PassportTrace]:
    judged = select_judged(rater)
    sample = set(judged.order_by("digest").values_list("pk", flat=True)[:MAX_TRACES])
    people = Assignment.objects.counted().filter(trace=OuterRef("pk")).exclude(rater__kind=RaterKind.MACHINE)
    labeled = judged.filter(Exists(people)).order_by("-pk").values_list("pk", flat=True)[:MAX_TRACES]
    columns = ("pk", "problem_id", "problem__domain", "n_steps", "is_right")
    found: dict[int, PassportTrace] = {}
    for part in paging.split(sorted({*sample, *labeled}), _CHUNK):
        for pk, problem, domain, n_steps, is_right in Trace.objects.filter(pk__in=part).values_list(*columns):
            found[pk] = PassportTrace(pk, problem, domain, n_steps, is_right, in_pool=pk in sample)
    return found


def select_judged(rater: Rater) -> QuerySet[Trace]:
    """Return the traces that a machine judged, also those without a readable answer."""
    labeled = select_work(rater).filter(trace=OuterRef("pk"))
    judged = JudgedTrace.objects.filter(judge__rater=rater, trace=OuterRef("pk"))
    return Trace.objects.available().filter(Exists(labeled) | Exists(judged), project=rater.project_id)


def select_work(rater: Rater) -> QuerySet[Assignment]:
    return Assignment.objects.counted().filter(rater=rater, purpose=AssignmentPurpose.WORK)


def _add_machine(rater: Rater, traces: Mapping[int, PassportTrace]) -> None:
    work = list(select_work(rater).filter(trace__in=traces).values_list("pk", "submitted_revision"))
    for report in submitted_reports.load_revision_reports(work):
        row = traces[report.trace_id]
        row.end = row.n_steps if report.position is None else report.position
    for trace, position, _kind, rating in _load_ratings([pk for pk, _ in work], is_first=False):
        traces[trace].labels[position] = rating
    stated = JudgedTrace.objects.filter(judge__rater=rater, trace__in=traces).exclude(submission=None)
    for trace, first_errors in stated.values_list("trace", "first_errors"):
        row = traces[trace]
        shares = {row.n_steps if place is None else place: share for place, share in first_errors}
        row.confidence = shares.get(row.end, 0.0) if row.end is not None else None
        row.p_error = 1.0 - shares.get(row.n_steps, 0.0)


def _add_people(traces: Mapping[int, PassportTrace]) -> None:
    people = Assignment.objects.counted().filter(trace__in=traces, is_assisted=False)
    people = people.exclude(rater__kind=RaterKind.MACHINE)
    work = dict(people.filter(purpose=AssignmentPurpose.WORK).values_list("pk", "trace"))
    for report in submitted_reports.load_revision_reports([(pk, 1) for pk in work]):
        row = traces[report.trace_id]
        if report.is_censored:
            row.censored[report.rater_id] = min(report.n_passed, row.n_steps)
        else:
            row.people[report.rater_id] = row.n_steps if report.position is None else report.position
    for trace, position, kind, rating in _load_ratings(list(work), is_first=True):
        traces[trace].given[rating] += 1
        if position in traces[trace].labels:
            traces[trace].step_pairs.append(StepPair(kind, traces[trace].labels[position], rating))
    gold = list(people.filter(purpose=AssignmentPurpose.GOLD).values_list("pk", flat=True))
    for report in submitted_reports.load_revision_reports([(pk, 1) for pk in gold]):
        if not report.is_censored:
            row = traces[report.trace_id]
            row.gold_answers.append(row.n_steps if report.position is None else report.position)


def _load_ratings(assignments: Sequence[int], *, is_first: bool) -> Iterator[tuple[int, int, str, int]]:
    """Yield (trace, position, kind of step, rating) for the trace's own steps, of the first or the latest revision."""
    rows = Judgment.objects.filter(
        turn__assignment__in=assignments,
        turn__revision=1 if is_first else F("turn__assignment__submitted_revision"),
        turn__step__is_rateable=True,
        option__position=0,
        rating__isnull=False,
    )
    step = "turn__step__"
    yield from rows.values_list("turn__assignment__trace_id", f"{step}position", f"{step}kind", "rating")


def _add_references(project_id: int, traces: Mapping[int, PassportTrace]) -> None:
    rows = consensus.current_revisions(project_id=project_id).filter(trace__in=traces)
    for trace, first_error, labels in rows.values_list("trace", "first_error", "labels"):
        row = traces[trace]
        row.reference = row.n_steps if first_error is None else first_error
        row.reference_labels = {step: rating for step, option, rating, *_ in labels if not option}


def _add_gold(traces: Mapping[int, PassportTrace]) -> None:
    rows = Gold.objects.active().filter(trace__in=traces, use=GoldUse.HIDDEN)
    for trace, accepted in rows.values_list("trace", "accepted_first_errors"):
        row = traces[trace]
        row.accepted = {row.n_steps if place is None else place for place in accepted}


def group_by_domain(traces: Sequence[PassportTrace]) -> dict[str, list[PassportTrace]]:
    """Return the traces by domain."""
    found: dict[str, list[PassportTrace]] = defaultdict(list)
    for row in traces:
        found[row.domain].append(row)
    return dict(sorted(found.items()))
