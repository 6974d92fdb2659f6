"""Learns by night how the raters of a project err, and holds that against hidden gold. Alone writes fits.

People who saw no score are learned from by themselves, and once more together with machines and with whoever saw
scores: two fits, two posteriors of a trace, and nothing is settled by the second.

First-error Dawid–Skene over the latest readings gives each rater's rates. Gold is read by the project's own rule: as
many raters as would have been asked, in the order of their answers, so that what is said of gold holds of the work.
On it one temperature takes the over-confidence out, and the threshold is the lowest that keeps the promise of
acceptance by probability with the lower 90 % Clopper–Pearson bound.
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
from labeling.quality.redundancy import ReadingVote, ResolutionCourse
from stats import calibration, first_error_dawid_skene
from stats.arrays import Bools, Floats
from stats.first_error_dawid_skene import FirstErrorFit as Fitted

KIND = "labeling.fit"
MAX_READINGS = 20_000  # readings: rates need no more
MAX_GOLD_ANSWERS = 10_000  # gold answers
MIN_RATERS, MIN_TRACES = 3, 50  # traces that two or more have read
PROMISED_ACCURACY = 0.9
_MARK_CHUNK = 1000


def load_current_fit(project_id: int, basis: FitBasis = FitBasis.BLIND) -> RaterModelFit | None:
    return RaterModelFit.objects.filter(project_id=project_id, basis=basis).order_by("-number").first()


def enqueue_fit(*, project_id: int, by: User | None, now: dt.datetime) -> Job | None:
    """Have the raters of a project learned anew. None where that is asked for already."""
    subject = f"project:{project_id}"
    if Job.objects.unfinished().filter(kind=KIND, subject=subject).exists():
        return None
    return control.request_job(kind=KIND, subject=subject, arguments={"project": project_id}, by=by, now=now)


def chunks(job: Job) -> Iterator[Chunk]:
    """The job's work: learn; then, where one of the fits is the first, have everything settled looked at anew, so that
    it says its probability."""
    project_id, after = job.arguments["project"], int(job.checkpoint.get("after", 0))
    learner = _Learner(project_id, is_first=job.checkpoint.get("is_first", False))
    if not job.checkpoint:
        yield learner.write
    if not learner.is_first:
        return
    settled = Settlement.objects.filter(project=project_id, state=SettlementState.SETTLED).order_by("trace_id")
    while traces := list(settled.filter(trace_id__gt=after).values_list("trace_id", flat=True)[:_MARK_CHUNK]):
        after = traces[-1]
        yield partial(_mark_chunk_due, traces)


class _Learner:
    """The first chunk: remembers for the others whether there was no such fit before."""

    def __init__(self, project_id: int, *, is_first: bool) -> None:
        self.project_id, self.is_first = project_id, is_first

    def write(self, now: dt.datetime) -> JobProgress:
        made = {basis.value: fit_raters(project_id=self.project_id, now=now, basis=basis) for basis in FitBasis}
        numbers = {basis: fit.number if fit else None for basis, fit in made.items()}
        self.is_first = 1 in numbers.values()
        return JobProgress(1, result={"fits": numbers}, checkpoint={"after": 0, "is_first": self.is_first})


def _mark_chunk_due(traces: list[int], now: dt.datetime) -> JobProgress:
    resolution_state.mark_due(trace_ids=traces, now=now)
    return JobProgress(1, checkpoint={"after": traces[-1], "is_first": True})


def fit_raters(*, project_id: int, now: dt.datetime, basis: FitBasis = FitBasis.BLIND) -> RaterModelFit | None:
    """A new fit; None where too little was read, or where no two readings are of the same steps, or where nobody but
    people who saw no score has read anything."""
    project = Project.objects.get(pk=project_id)
    assisted = (
        submitted_readings.load_assisted_readings(project_id=project_id, limit=MAX_READINGS)
        if basis == FitBasis.ASSISTED
        else []
    )
    golds = _add_assisted_readings(_load_gold_readings(project), assisted)
    known = {gold.trace_id for gold in golds}
    work = [each for each in [*_load_readings(project_id), *assisted] if each.trace_id not in known]
    seen = [*work, *(each for gold in golds for each in gold.seen)]
    if project.protocol == Protocol.LIVE or not _is_enough(seen) or (basis == FitBasis.ASSISTED and not assisted):
        return None
    return _save_fit(_build_fit(project, seen, golds, basis, now))


def _build_fit(
    project: Project, seen: list[ObservedFirstError], golds: list["_GoldReadings"], basis: FitBasis, now: dt.datetime
) -> RaterModelFit:
    told = posteriors.load_trace_shapes({each.trace_id for each in seen})
    reports, traces, raters = posteriors.build_report_arrays(told, seen)
    found = first_error_dawid_skene.fit_reports(reports)
    names = sorted({told[trace].domain for trace in traces})
    everywhere = first_error_dawid_skene.fit_hazards(
        posterior=found.posterior, places=found.places, domains=np.zeros_like(reports.domains)
    )
    return RaterModelFit(
        project=project,
        basis=basis,
        made_at=now,
        n_traces=len(traces),
        n_readings=len(seen),
        rates={"others": found.common.tolist(), **dict(zip(map(str, raters), found.rates.tolist(), strict=True))},
        hazards={"domains": dict(zip(names, found.hazards.tolist(), strict=True)), "all": everywhere[0].tolist()},
        **_evaluate_on_gold(
            found, [find_accepted_places(golds, told).get(trace, set()) for trace in traces], told, traces
        ),
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


def _load_readings(project_id: int) -> list[ObservedFirstError]:
    latest = FirstErrorReport.objects.filter(project=project_id).order_by("-assignment_id")
    columns = ("trace_id", "rater_id", "first_error", "n_passed", "is_censored")
    return [ObservedFirstError(*row) for row in latest.values_list(*columns)[:MAX_READINGS]]


def _is_enough(seen: list[ObservedFirstError]) -> bool:
    raters_of: dict[int, set[int]] = defaultdict(set)
    for each in seen:
        raters_of[each.trace_id].add(each.rater_id)
    n_met = sum(len(raters) >= 2 for raters in raters_of.values())
    return len({each.rater_id for each in seen}) >= MIN_RATERS and n_met >= MIN_TRACES


class _GoldReadings(NamedTuple):
    """A gold trace as the project would have read it."""

    trace_id: int
    accepted: list[int | None]
    seen: list[ObservedFirstError]


def _add_assisted_readings(golds: list[_GoldReadings], assisted: list[ObservedFirstError]) -> list[_GoldReadings]:
    """As they were read with machines and whoever saw scores besides."""
    of_trace: dict[int, list[ObservedFirstError]] = defaultdict(list)
    for each in assisted:
        of_trace[each.trace_id].append(each)
    return [gold._replace(seen=[*gold.seen, *of_trace[gold.trace_id]]) for gold in golds]


def _load_gold_readings(project: Project) -> list[_GoldReadings]:
    """Hidden gold that as many have met as would have been asked."""
    rows = GoldAnswer.objects.filter(project=project, use=GoldUse.HIDDEN).exclude(verdict=GoldVerdict.GAVE_UP)
    latest = list(
        rows.order_by("-answered_at", "-pk").values_list("gold_id", "rater_id", "first_error")[:MAX_GOLD_ANSWERS]
    )
    by_gold: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
    for gold, rater, first_error in reversed(latest):
        by_gold[gold].append((rater, first_error))
    known = Gold.objects.in_bulk(by_gold)
    read = ((known[gold], _answers_by_project_rule(answers, project)) for gold, answers in by_gold.items())
    return [
        _GoldReadings(
            gold.trace_id,
            gold.accepted_first_errors,
            [ObservedFirstError(gold.trace_id, *each, 0, False) for each in answers],
        )
        for gold, answers in read
        if answers
    ]


def _answers_by_project_rule(answers: list[tuple[int, int | None]], project: Project) -> list[tuple[int, int | None]]:
    """The first answers, and further ones as long as they would have been asked for; nothing where there are fewer."""
    for n in range(project.overlap, min(len(answers), project.overlap_limit) + 1):
        said = [ReadingVote(first_error) for _, first_error in answers[:n]]
        weighed = redundancy.weigh_votes(said, overlap=project.overlap, added=n - project.overlap)
        if weighed.course != ResolutionCourse.ASK or n == project.overlap_limit:
            return answers[:n]
    return []


def find_accepted_places(golds: list[_GoldReadings], told: dict[int, TraceShape]) -> dict[int, set[int]]:
    """The accepted places of each gold trace, by place among its rateable steps."""
    return {
        each.trace_id: {
            len(told[each.trace_id].positions) if at is None else told[each.trace_id].positions.index(at)
            for at in each.accepted
        }
        for each in golds
        if each.trace_id in told
    }


def _evaluate_on_gold(
    found: Fitted, accepted: list[set[int]], told: dict[int, TraceShape], traces: list[int]
) -> dict[str, float | int | str | None]:
    """How far the fit is right on gold: temperature, calibration, threshold."""
    places = found.places
    is_accepted = np.array(
        [step in accepted[trace] for trace, step in zip(places.traces.tolist(), places.steps.tolist(), strict=True)],
        dtype=np.bool_,
    )
    is_gold = np.array([bool(each) for each in accepted], dtype=np.bool_)
    cooling = calibration.fit_temperature(posterior=found.posterior, places=places, is_accepted=is_accepted)
    cooled = calibration.apply_temperature(posterior=found.posterior, places=places, temperature=cooling)
    sure, is_right = _most_likely_and_right(cooled, found, accepted)
    before, was_right = _most_likely_and_right(found.posterior, found, accepted)
    rule = calibration.choose_acceptance_threshold(
        confidences=sure[is_gold], is_right=is_right[is_gold], promised=PROMISED_ACCURACY
    )
    return {
        "n_gold": int(is_gold.sum()),
        "temperature": cooling.value,
        "temperature_reason": str(cooling.reason or ""),
        "gap_before": _calibration_error(before[is_gold], was_right[is_gold]),
        "gap_after": _calibration_error(sure[is_gold], is_right[is_gold]),
        "threshold": rule.threshold,
        "threshold_reason": str(rule.reason or ""),
        "n_accepted": rule.n_accepted,
        "lower_bound": rule.lower_bound,
    }


def _most_likely_and_right(posterior: Floats, found: Fitted, accepted: list[set[int]]) -> tuple[Floats, Bools]:
    steps, sure = first_error_dawid_skene.most_likely_places(posterior, found.places)
    right = [step in places for step, places in zip(steps.tolist(), accepted, strict=True)]
    return sure, np.array(right, dtype=np.bool_)


def _calibration_error(confidences: Floats, is_right: Bools) -> float | None:
    if not len(confidences):
        return None
    return calibration.expected_calibration_error(confidences=confidences, is_right=is_right)
