"""Fit the rater model of a project, nightly and when it has grown, and evaluate it on hidden gold. The only module that
writes fits.

First-error Dawid-Skene over the latest submissions estimates each rater's error rates, with the known answers of hidden
gold. Each gold trace is evaluated by a fit that does not know its answer, and under the project's own rule: its answers
are divided into groups of as many as would have been requested for a work trace. So results on gold carry over to the
work. On the first groups, one temperature corrects overconfidence, and the acceptance threshold is the lowest whose
90 % Clopper-Pearson lower bound keeps the promised accuracy.

Votes settle traces until the model is right on hidden gold as often as its probabilities promise; up to MAX_GROUPS
groups of a gold trace count here. Then the model settles them: see `redundancy.settle_by_model`.

There are two fits. The blind fit uses only people who saw no scores. The assisted fit adds machines and people who saw
scores; its posterior is exported, but nothing is settled by it.

The posterior of a trace follows from its submissions and a stored fit. It is cheap, and a new submission changes only
its own trace.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import F, Max, Sum

from events import audit_log
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import (
    Consensus,
    FirstErrorReport,
    Gold,
    GoldAnswer,
    Project,
    RaterModelFit,
    ReportCount,
    Settlement,
)
from labeling.models.consensus import FitBasis, SettlementState
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.models.project import Protocol
from labeling.quality import posteriors, redundancy, settlements, submitted_reports
from labeling.quality.posteriors import TraceShape
from labeling.quality.redundancy import ResolutionCourse
from labeling.quality.submitted_reports import RevisionReport
from stats import calibration, first_error_dawid_skene, first_error_reports
from stats.arrays import Bools, Floats
from stats.first_error_dawid_skene import FirstErrorFit
from stats.first_error_reports import FirstErrorPlaces, ReportArrays

KIND = "labeling.fit"
MAX_SUBMISSIONS = 20_000  # enough for stable rates
MAX_GOLD_ANSWERS = 10_000
MIN_RATERS, MIN_TRACES = 3, 50  # counts traces with two or more submissions
PROMISED_ACCURACY = 0.9
MIN_SUBMISSIONS, MIN_GROWTH = 2 * MIN_TRACES, 1.25  # for a fit during the day
_FOLDS = 3  # of gold, for its evaluation
MAX_GROUPS = 3  # of answers of one gold trace
_MARK_CHUNK = 1000
_REPORT_COLUMNS = ("assignment_id", "revision", "trace_id", "rater_id", "first_error", "n_passed", "is_censored")


def load_current_fit(project_id: int, basis: FitBasis = FitBasis.BLIND) -> RaterModelFit | None:
    return RaterModelFit.objects.filter(project_id=project_id, basis=basis).order_by("-number").first()


def enqueue_fit(*, project_id: int, now: dt.datetime) -> Job | None:
    """Request a new fit. Return None if one is already pending."""
    subject = f"project:{project_id}"
    if Job.objects.unfinished().filter(kind=KIND, subject=subject).exists():
        return None
    arguments = {"project": project_id, "n_submissions": _count_submissions(project_id)}
    return control.request_job(kind=KIND, subject=subject, arguments=arguments, by=None, now=now)


def enqueue_fit_if_grown(*, project_id: int, now: dt.datetime) -> Job | None:
    """Request a fit if there are many more submissions than at the last one, without waiting for the night: a small
    project may be labeled in a day."""
    n = _count_submissions(project_id)
    last = Job.objects.filter(kind=KIND, subject=f"project:{project_id}").order_by("-pk").first()
    known = last.arguments.get("n_submissions", 0) if last else 0
    return enqueue_fit(project_id=project_id, now=now) if n >= max(MIN_GROWTH * known, MIN_SUBMISSIONS) else None


def _count_submissions(project_id: int) -> int:
    return int(ReportCount.objects.filter(project=project_id).aggregate(n=Sum("readings"))["n"] or 0)


def chunks(job: Job) -> Iterator[Chunk]:
    """Fit the raters, then mark settled traces as due. After a project's first fit, and after its first fit that
    settles traces, these are all settled traces, so that each has a current probability; later only those that the new
    fit doubts."""
    project_id = job.arguments["project"]
    if not job.checkpoint:
        yield partial(_write_fits, project_id)
    fit = load_current_fit(project_id)
    if not job.checkpoint["is_first"] and not (fit and fit.settles_traces):
        return
    settled = Settlement.objects.filter(project=project_id, state=SettlementState.SETTLED).order_by("trace_id")
    traces = settled.values_list("trace_id", flat=True)
    while chunk := list(traces.filter(trace_id__gt=job.checkpoint["after"])[:_MARK_CHUNK]):
        chosen = chunk if job.checkpoint["is_first"] or fit is None else _find_doubtful(fit, chunk)
        yield partial(_mark_chunk_due, chosen, chunk[-1], job.checkpoint["is_first"])


def _find_doubtful(fit: RaterModelFit, traces: list[int]) -> list[int]:
    """Return the traces with several votes whose first error is not probable enough under this fit."""
    rows = FirstErrorReport.objects.filter(trace__in=traces, assignment__set_aside=None).order_by("assignment_id")
    reports = [RevisionReport(*row) for row in rows.values_list(*_REPORT_COLUMNS)]
    n_votes = Counter(report.trace_id for report in reports if not report.is_censored)
    several = {trace for trace, n in n_votes.items() if n > 1}
    shapes = posteriors.load_trace_shapes(several)
    known = [report for report in reports if report.trace_id in several]
    found, places, posterior = posteriors.compute_cooled_posterior(fit, shapes, known)
    revisions = Consensus.objects.filter(trace__in=several, revision=F("trace__settlement__consensus_revision"))
    first_errors = dict(revisions.values_list("trace", "first_error"))
    doubtful = []
    for trace, start in zip(found, places.starts.tolist(), strict=True):
        if trace not in first_errors:
            continue
        error, shape = first_errors[trace], shapes[trace]
        can_be_error = error is None or error in shape.positions  # imported files can rate steps that are context
        if not can_be_error or posterior[start + shape.place_of(error)] < redundancy.DOUBTFUL:
            doubtful.append(trace)
    return doubtful


def _write_fits(project_id: int, now: dt.datetime) -> JobProgress:
    earlier = load_current_fit(project_id)
    fits = {basis.value: fit_raters(project_id=project_id, now=now, basis=basis) for basis in FitBasis}
    numbers = {basis: fit.number if fit else None for basis, fit in fits.items()}
    blind = fits[FitBasis.BLIND.value]
    settles_now = blind is not None and blind.settles_traces and not (earlier and earlier.settles_traces)
    checkpoint = {"after": 0, "is_first": 1 in numbers.values() or settles_now}
    return JobProgress(1, result={"fits": numbers}, checkpoint=checkpoint)


def _mark_chunk_due(traces: list[int], last: int, is_first: bool, now: dt.datetime) -> JobProgress:
    settlements.mark_due(trace_ids=traces, now=now)
    return JobProgress(1, checkpoint={"after": last, "is_first": is_first})


def fit_raters(*, project_id: int, now: dt.datetime, basis: FitBasis = FitBasis.BLIND) -> RaterModelFit | None:
    """Return a new fit, or None if there is too little data.

    Live projects are never fitted, because no two submissions share steps. The assisted fit needs assisted submissions.
    """
    project = Project.objects.get(pk=project_id)
    if project.protocol == Protocol.LIVE:
        return None
    assisted = []
    if basis == FitBasis.ASSISTED:
        assisted = submitted_reports.load_assisted_reports(project_id=project_id, limit=MAX_SUBMISSIONS)
    gold = _load_gold(project)
    work = [report for report in _load_latest_reports(project_id) if report.trace_id not in gold]
    reports = [*work, *(answer for labeled in gold.values() for answer in labeled.answers), *assisted]
    if not _is_enough(reports) or (basis == FitBasis.ASSISTED and not assisted):
        return None
    shapes = posteriors.load_trace_shapes({report.trace_id for report in reports})
    return _save_fit(build_fit(project, reports, gold=gold, shapes=shapes, basis=basis, now=now))


class LabeledGold(NamedTuple):
    """A gold trace: its accepted first errors, and its answers in groups of as many as a work trace gets."""

    accepted: list[int | None]
    groups: list[list[RevisionReport]]
    is_enough: bool  # whether the first group is complete

    @property
    def answers(self) -> list[RevisionReport]:
        return [answer for group in self.groups for answer in group]


def build_fit(
    project: Project,
    reports: Sequence[RevisionReport],
    *,
    gold: Mapping[int, LabeledGold],
    shapes: Mapping[int, TraceShape],
    basis: FitBasis,
    now: dt.datetime,
) -> RaterModelFit:
    """Fit the raters to these reports, which include the answers of gold, and evaluate the fit on gold. Pure."""
    arrays, traces, raters = posteriors.build_report_arrays(shapes, reports)
    accepted = {trace: gold[trace].accepted for trace in traces if trace in gold}
    known = {trace: {shapes[trace].place_of(each) for each in accepted[trace]} for trace in accepted}
    domains = sorted({shapes[trace].domain for trace in traces})
    fit = first_error_dawid_skene.fit_reports(arrays, possible=_find_possible(arrays, traces, known))
    trials = _run_trials(project, arrays, (traces, raters, domains), gold=gold, known=known, shapes=shapes)
    return RaterModelFit(
        project=project,
        basis=basis,
        made_at=now,
        n_traces=len(traces),
        n_readings=len(reports),
        **_describe_rates(fit, raters, domains, arrays),
        **_evaluate_on_gold(trials),
        **_compare_with_votes(trials),
    )


def _describe_rates(
    fit: FirstErrorFit, raters: Sequence[int], domains: Sequence[str], arrays: ReportArrays
) -> dict[str, dict[str, Any]]:
    """Return the rates and hazards of a fit as they are stored."""
    all_hazards = first_error_dawid_skene.fit_hazards(
        posterior=fit.posterior, places=fit.places, domains=np.zeros_like(arrays.domains)
    )
    return {
        "rates": {"others": fit.common.tolist(), **dict(zip(map(str, raters), fit.rates.tolist(), strict=True))},
        "hazards": {"domains": dict(zip(domains, fit.hazards.tolist(), strict=True)), "all": all_hazards[0].tolist()},
    }


def _find_possible(arrays: ReportArrays, traces: Sequence[int], known: Mapping[int, set[int]]) -> Bools:
    """Return which places can be the first error: of gold, only the accepted ones."""
    places = first_error_reports.enumerate_places(arrays.lengths)
    pairs = zip(places.traces.tolist(), places.steps.tolist(), strict=True)
    return np.array([step in known.get(traces[trace], {step}) for trace, step in pairs], dtype=np.bool_)


class _GoldTrials(NamedTuple):
    """What the model finds from each group of gold answers, by rates that were fitted without knowing the answer."""

    places: FirstErrorPlaces
    posterior: Floats
    accepted: list[set[int]]  # places, by group
    accepted_first: list[set[int]]  # the same, empty for all but the first group of a trace, and where it is incomplete
    voted: dict[int, int]  # the place that votes settle, by group; of the same groups


def _run_trials(
    project: Project,
    arrays: ReportArrays,
    names: tuple[list[int], list[int], list[str]],
    *,
    gold: Mapping[int, LabeledGold],
    known: Mapping[int, set[int]],
    shapes: Mapping[int, TraceShape],
) -> _GoldTrials:
    """Evaluate each group of gold answers by a fit that does not know the answer. Groups beyond MAX_GROUPS of one trace
    are left out: a few traces do not show how the model does on others."""
    traces, raters, domains = names
    groups = [(t, group) for t in known for group in gold[t].groups[:MAX_GROUPS]]
    group_shapes = {number: shapes[trace] for number, (trace, _) in enumerate(groups)}
    answers = [answer._replace(trace_id=number) for number, (_, group) in enumerate(groups) for answer in group]
    places = first_error_reports.enumerate_places(
        np.array([len(shape.positions) for shape in group_shapes.values()], dtype=np.int64)
    )
    posterior = np.zeros(places.n)
    for fold in range(min(_FOLDS, len(known))):
        hidden = set(list(known)[fold::_FOLDS])
        others = {trace: each for trace, each in known.items() if trace not in hidden}
        part = first_error_dawid_skene.fit_reports(arrays, possible=_find_possible(arrays, traces, others))
        part_fit = RaterModelFit(**_describe_rates(part, raters, domains, arrays))
        is_hidden = np.array([trace in hidden for trace, _ in groups], dtype=np.bool_)[places.traces]
        posterior[is_hidden] = posteriors.compute_sharp_posterior(part_fit, group_shapes, answers)[2][is_hidden]
    is_used = [group is gold[trace].groups[0] and gold[trace].is_enough for trace, group in groups]
    voted = {}
    for number, (trace, group) in enumerate(groups):
        weighed = redundancy.weigh_votes([each for each in group if each.is_blind], overlap=project.overlap, added=0)
        if is_used[number] and weighed.course == ResolutionCourse.SETTLED:
            voted[number] = shapes[trace].place_of(weighed.first_error)
    accepted = [known[trace] for trace, _ in groups]
    first = [each if used else set() for each, used in zip(accepted, is_used, strict=True)]
    return _GoldTrials(places, posterior, accepted, first, voted)


def _save_fit(fit: RaterModelFit) -> RaterModelFit:
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=fit.project_id)
        last = RaterModelFit.objects.filter(project=fit.project_id, basis=fit.basis).aggregate(n=Max("number"))["n"]
        fit.number = (last or 0) + 1
        fit.save()
        detail = {"basis": fit.basis, "fit": fit.number, "gold": fit.n_gold, "threshold": fit.threshold}
        subject = f"project:{fit.project_id}"
        audit_log.log_event(
            what="raters.fitted", by=None, now=fit.made_at, project=fit.project_id, subject=subject, detail=detail
        )
    return fit


def _load_latest_reports(project_id: int) -> list[RevisionReport]:
    latest = FirstErrorReport.objects.filter(project=project_id, assignment__set_aside=None).order_by("-assignment_id")
    return [RevisionReport(*row) for row in latest.values_list(*_REPORT_COLUMNS)[:MAX_SUBMISSIONS]]


def _is_enough(reports: list[RevisionReport]) -> bool:
    raters_of: dict[int, set[int]] = defaultdict(set)
    for report in reports:
        raters_of[report.trace_id].add(report.rater_id)
    n_shared = sum(len(raters) >= 2 for raters in raters_of.values())
    return len({report.rater_id for report in reports}) >= MIN_RATERS and n_shared >= MIN_TRACES


def _load_gold(project: Project) -> dict[int, LabeledGold]:
    """Load the labeled hidden gold by trace, from the latest answers."""
    answers = GoldAnswer.objects.counted().filter(project=project, use=GoldUse.HIDDEN)
    answers = answers.exclude(verdict=GoldVerdict.GAVE_UP)
    latest = list(answers.select_related("gold").order_by("-answered_at", "-pk")[:MAX_GOLD_ANSWERS])
    by_gold: dict[Gold, list[RevisionReport]] = defaultdict(list)
    for answer in reversed(latest):
        by_gold[answer.gold].append(
            RevisionReport(answer.assignment_id, 1, answer.gold.trace_id, answer.rater_id, answer.first_error, 0)
        )
    return {
        gold.trace_id: group_gold_answers(gold.accepted_first_errors, reports, project)
        for gold, reports in by_gold.items()
    }


def group_gold_answers(accepted: list[int | None], answers: Sequence[RevisionReport], project: Project) -> LabeledGold:
    """Divide the answers of a gold trace into groups: in each, those that would have been requested for a work trace.
    The last group may have fewer."""
    groups, rest = [], list(answers)
    is_enough = bool(_apply_project_rule(rest, project))
    while rest:
        group = _apply_project_rule(rest, project) or rest
        groups.append(group)
        rest = rest[len(group) :]
    return LabeledGold(accepted, groups, is_enough)


def _apply_project_rule(answers: list[RevisionReport], project: Project) -> list[RevisionReport]:
    """Return the answers that would have been requested for a work trace, or none if there are too few."""
    for n in range(project.overlap, min(len(answers), project.overlap_limit) + 1):
        weighed = redundancy.weigh_votes(answers[:n], overlap=project.overlap, added=n - project.overlap)
        if weighed.course != ResolutionCourse.ASK or n == project.overlap_limit:
            return answers[:n]
    return []


def _evaluate_on_gold(trials: _GoldTrials) -> dict[str, float | int | str | None]:
    """Compute temperature and threshold from the first group of each trace, if it is complete. From all groups, compare
    how often the most likely place is right with how often the probabilities promise it."""
    posterior, places, accepted = trials.posterior, trials.places, trials.accepted_first
    pairs = zip(places.traces.tolist(), places.steps.tolist(), strict=True)
    is_accepted = np.array([step in accepted[group] for group, step in pairs], dtype=np.bool_)
    temperature = calibration.fit_temperature(posterior=posterior, places=places, is_accepted=is_accepted)
    cooled = calibration.apply_temperature(posterior=posterior, places=places, temperature=temperature)
    is_gold = np.array([bool(each) for each in accepted], dtype=np.bool_)
    before, was_right = _most_likely_and_right(posterior, places, trials.accepted)
    after, is_right = _most_likely_and_right(cooled, places, trials.accepted)
    rule = calibration.choose_acceptance_threshold(
        confidences=after[is_gold], is_right=is_right[is_gold], promised=PROMISED_ACCURACY
    )
    return {
        "n_gold": int(is_gold.sum()),
        "temperature": temperature.value,
        "temperature_reason": str(temperature.reason or ""),
        "gap_before": _calibration_error(before[is_gold], was_right[is_gold]),
        "gap_after": _calibration_error(after[is_gold], is_right[is_gold]),
        "threshold": rule.threshold,
        "threshold_reason": str(rule.reason or ""),
        "n_accepted": rule.n_accepted,
        "lower_bound": rule.lower_bound,
        "n_checked": len(after),
        "checked_right": int(is_right.sum()),
        "checked_expected": float(after.sum()),
        "checked_deviation": float(np.sqrt((after * (1 - after)).sum())),
    }


def _compare_with_votes(trials: _GoldTrials) -> dict[str, int]:
    """Count on the groups that votes settle how often the votes are right, and how often the model is."""
    steps, _ = first_error_reports.most_likely_places(trials.posterior, trials.places)
    return {
        "n_compared": len(trials.voted),
        "votes_right": sum(place in trials.accepted[group] for group, place in trials.voted.items()),
        "model_right": sum(steps[group] in trials.accepted[group] for group in trials.voted),
    }


def _most_likely_and_right(
    posterior: Floats, places: FirstErrorPlaces, accepted: list[set[int]]
) -> tuple[Floats, Bools]:
    steps, probabilities = first_error_reports.most_likely_places(posterior, places)
    is_right = [step in each for step, each in zip(steps.tolist(), accepted, strict=True)]
    return probabilities, np.array(is_right, dtype=np.bool_)


def _calibration_error(confidences: Floats, is_right: Bools) -> float | None:
    if not len(confidences):
        return None
    return calibration.expected_calibration_error(confidences=confidences, is_right=is_right)
