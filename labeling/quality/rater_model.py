"""Fit the rater model of a project nightly, and evaluate it on hidden gold. The only module that writes fits.

First-error Dawid-Skene over the latest submissions estimates each rater's error rates. Hidden gold is evaluated under
the project's own rule: only the answers that would have been requested for a work trace count, so results on gold carry
over to the work. On gold, one temperature corrects overconfidence, and the acceptance threshold is the lowest whose
90 % Clopper-Pearson lower bound keeps the promised accuracy.

There are two fits. The blind fit uses only people who saw no scores. The assisted fit adds machines and people who saw
scores; its posterior is exported, but nothing is settled by it.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import Max

from accounts.models import User
from events import audit_log
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import FirstErrorReport, Gold, GoldAnswer, Project, RaterModelFit, Settlement
from labeling.models.consensus import SettlementState
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.models.project import Protocol
from labeling.models.rater_model import FitBasis
from labeling.quality import posteriors, redundancy, resolution_state, submitted_readings
from labeling.quality.posteriors import ObservedFirstError, TraceShape
from labeling.quality.redundancy import ResolutionCourse, SubmittedVote
from stats import calibration, first_error_dawid_skene
from stats.arrays import Bools, Floats
from stats.first_error_dawid_skene import FirstErrorFit

KIND = "labeling.fit"
MAX_SUBMISSIONS = 20_000  # enough for stable rates
MAX_GOLD_ANSWERS = 10_000
MIN_RATERS, MIN_TRACES = 3, 50  # traces with two or more submissions
PROMISED_ACCURACY = 0.9
_MARK_CHUNK = 1000


def load_current_fit(project_id: int, basis: FitBasis = FitBasis.BLIND) -> RaterModelFit | None:
    return RaterModelFit.objects.filter(project_id=project_id, basis=basis).order_by("-number").first()


def enqueue_fit(*, project_id: int, by: User | None, now: dt.datetime) -> Job | None:
    """Request a new fit. Return None if one is already pending."""
    subject = f"project:{project_id}"
    if Job.objects.unfinished().filter(kind=KIND, subject=subject).exists():
        return None
    return control.request_job(kind=KIND, subject=subject, arguments={"project": project_id}, by=by, now=now)


def chunks(job: Job) -> Iterator[Chunk]:
    """Fit the raters. After a project's first fit, mark settled traces as due, so that they get a probability."""
    project_id, after = job.arguments["project"], int(job.checkpoint.get("after", 0))
    fitter = _Fitter(project_id, is_first=job.checkpoint.get("is_first", False))
    if not job.checkpoint:
        yield fitter.write
    if not fitter.is_first:
        return
    settled = Settlement.objects.filter(project=project_id, state=SettlementState.SETTLED).order_by("trace_id")
    while traces := list(settled.filter(trace_id__gt=after).values_list("trace_id", flat=True)[:_MARK_CHUNK]):
        after = traces[-1]
        yield partial(_mark_chunk_due, traces)


class _Fitter:
    """The first chunk. It remembers for later chunks whether this is the project's first fit."""

    def __init__(self, project_id: int, *, is_first: bool) -> None:
        self.project_id, self.is_first = project_id, is_first

    def write(self, now: dt.datetime) -> JobProgress:
        fits = {basis.value: fit_raters(project_id=self.project_id, now=now, basis=basis) for basis in FitBasis}
        numbers = {basis: fit.number if fit else None for basis, fit in fits.items()}
        self.is_first = 1 in numbers.values()
        return JobProgress(1, result={"fits": numbers}, checkpoint={"after": 0, "is_first": self.is_first})


def _mark_chunk_due(traces: list[int], now: dt.datetime) -> JobProgress:
    resolution_state.mark_due(trace_ids=traces, now=now)
    return JobProgress(1, checkpoint={"after": traces[-1], "is_first": True})


def fit_raters(*, project_id: int, now: dt.datetime, basis: FitBasis = FitBasis.BLIND) -> RaterModelFit | None:
    """Return a new fit, or None if there is too little data.

    Live projects are never fitted, because no two submissions share steps. The assisted fit needs assisted submissions.
    """
    project = Project.objects.get(pk=project_id)
    assisted = (
        submitted_readings.load_assisted_observations(project_id=project_id, limit=MAX_SUBMISSIONS)
        if basis == FitBasis.ASSISTED
        else []
    )
    golds = _add_assisted(_load_gold_traces(project), assisted)
    gold_traces = {gold.trace_id for gold in golds}
    work = [row for row in [*_load_observations(project_id), *assisted] if row.trace_id not in gold_traces]
    observations = [*work, *(row for gold in golds for row in gold.observations)]
    if (
        project.protocol == Protocol.LIVE
        or not _is_enough(observations)
        or (basis == FitBasis.ASSISTED and not assisted)
    ):
        return None
    return _save_fit(_build_fit(project, observations, golds, basis, now))


def _build_fit(
    project: Project,
    observations: list[ObservedFirstError],
    golds: list["_GoldTrace"],
    basis: FitBasis,
    now: dt.datetime,
) -> RaterModelFit:
    shapes = posteriors.load_trace_shapes({row.trace_id for row in observations})
    reports, traces, raters = posteriors.build_report_arrays(shapes, observations)
    fit = first_error_dawid_skene.fit_reports(reports)
    domains = sorted({shapes[trace].domain for trace in traces})
    accepted = find_accepted_places(golds, shapes)
    all_hazards = first_error_dawid_skene.fit_hazards(
        posterior=fit.posterior, places=fit.places, domains=np.zeros_like(reports.domains)
    )
    return RaterModelFit(
        project=project,
        basis=basis,
        made_at=now,
        n_traces=len(traces),
        n_readings=len(observations),
        rates={"others": fit.common.tolist(), **dict(zip(map(str, raters), fit.rates.tolist(), strict=True))},
        hazards={"domains": dict(zip(domains, fit.hazards.tolist(), strict=True)), "all": all_hazards[0].tolist()},
        **_evaluate_on_gold(fit, [accepted.get(trace, set()) for trace in traces]),
    )


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


def _load_observations(project_id: int) -> list[ObservedFirstError]:
    latest = FirstErrorReport.objects.filter(project=project_id).order_by("-assignment_id")
    columns = ("trace_id", "rater_id", "first_error", "n_passed", "is_censored")
    return [ObservedFirstError(*row) for row in latest.values_list(*columns)[:MAX_SUBMISSIONS]]


def _is_enough(observations: list[ObservedFirstError]) -> bool:
    raters_of: dict[int, set[int]] = defaultdict(set)
    for row in observations:
        raters_of[row.trace_id].add(row.rater_id)
    n_shared = sum(len(raters) >= 2 for raters in raters_of.values())
    return len({row.rater_id for row in observations}) >= MIN_RATERS and n_shared >= MIN_TRACES


class _GoldTrace(NamedTuple):
    """A gold trace with the submissions that the project would have requested for a work trace."""

    trace_id: int
    accepted: list[int | None]
    observations: list[ObservedFirstError]


def _add_assisted(golds: list[_GoldTrace], assisted: list[ObservedFirstError]) -> list[_GoldTrace]:
    by_trace: dict[int, list[ObservedFirstError]] = defaultdict(list)
    for row in assisted:
        by_trace[row.trace_id].append(row)
    return [gold._replace(observations=[*gold.observations, *by_trace[gold.trace_id]]) for gold in golds]


def _load_gold_traces(project: Project) -> list[_GoldTrace]:
    """Load hidden gold with as many answers as the project requests for a work trace."""
    rows = GoldAnswer.objects.filter(project=project, use=GoldUse.HIDDEN).exclude(verdict=GoldVerdict.GAVE_UP)
    latest = list(
        rows.order_by("-answered_at", "-pk").values_list("gold_id", "rater_id", "first_error")[:MAX_GOLD_ANSWERS]
    )
    by_gold: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
    for gold, rater, first_error in reversed(latest):
        by_gold[gold].append((rater, first_error))
    golds = Gold.objects.in_bulk(by_gold)
    counted = ((golds[gold], _answers_by_project_rule(answers, project)) for gold, answers in by_gold.items())
    return [
        _GoldTrace(
            gold.trace_id,
            gold.accepted_first_errors,
            [ObservedFirstError(gold.trace_id, *answer, 0, False) for answer in answers],
        )
        for gold, answers in counted
        if answers
    ]


def _answers_by_project_rule(answers: list[tuple[int, int | None]], project: Project) -> list[tuple[int, int | None]]:
    """Return the answers that would have been requested for a work trace, or none if there are too few."""
    for n in range(project.overlap, min(len(answers), project.overlap_limit) + 1):
        votes = [SubmittedVote(first_error) for _, first_error in answers[:n]]
        weighed = redundancy.weigh_votes(votes, overlap=project.overlap, added=n - project.overlap)
        if weighed.course != ResolutionCourse.ASK or n == project.overlap_limit:
            return answers[:n]
    return []


def find_accepted_places(golds: list[_GoldTrace], shapes: dict[int, TraceShape]) -> dict[int, set[int]]:
    """Return the accepted places of each gold trace, as indices of its rateable steps."""
    accepted = {}
    for gold in golds:
        if gold.trace_id in shapes:
            positions = shapes[gold.trace_id].positions
            accepted[gold.trace_id] = {len(positions) if at is None else positions.index(at) for at in gold.accepted}
    return accepted


def _evaluate_on_gold(fit: FirstErrorFit, accepted: list[set[int]]) -> dict[str, float | int | str | None]:
    """Compute temperature, calibration and threshold from the traces with accepted places."""
    places = fit.places
    is_accepted = np.array(
        [step in accepted[trace] for trace, step in zip(places.traces.tolist(), places.steps.tolist(), strict=True)],
        dtype=np.bool_,
    )
    is_gold = np.array([bool(steps) for steps in accepted], dtype=np.bool_)
    temperature = calibration.fit_temperature(posterior=fit.posterior, places=places, is_accepted=is_accepted)
    cooled = calibration.apply_temperature(posterior=fit.posterior, places=places, temperature=temperature)
    before, was_right = _most_likely_and_right(fit.posterior, fit, accepted)
    after, is_right = _most_likely_and_right(cooled, fit, accepted)
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
    }


def _most_likely_and_right(posterior: Floats, fit: FirstErrorFit, accepted: list[set[int]]) -> tuple[Floats, Bools]:
    steps, probabilities = first_error_dawid_skene.most_likely_places(posterior, fit.places)
    is_right = [step in places for step, places in zip(steps.tolist(), accepted, strict=True)]
    return probabilities, np.array(is_right, dtype=np.bool_)


def _calibration_error(confidences: Floats, is_right: Bools) -> float | None:
    if not len(confidences):
        return None
    return calibration.expected_calibration_error(confidences=confidences, is_right=is_right)
