"""Data of the generation pages: timeline, PRMs, progress, payoff. Writes nothing."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from charts import number_format
from charts.scales import AxisScale, choose_ticks, draw_axis_labels, draw_gridlines
from charts.svg import Drawing
from dashboard import audits
from dashboard.audits import PRMFigure, build_prm_figure
from dashboard.chart import Chart
from dashboard.tables import DataTable, TableColumn
from dashboard.time_left import format_time_left
from jobs.models import Job, JobState
from labeling.models import Assignment, Project, TraceDraw
from prm import generations
from prm.models import PRM, Generation
from prm.models.generation import Stage

HEADLINE_FIGURE = "risk_set_auc_length_matched"
GATE_REASONS: dict[str, Any] = {  # by the reason that the gate stores
    "better than the current one": gettext_lazy("better than the previous PRM"),
    "not worse than the current one beyond its interval": gettext_lazy("not worse than the previous PRM"),
    "the first one": gettext_lazy("first PRM trained on this project's labels"),
    "the first one; the reserve has too few labels to judge it": gettext_lazy(
        "first PRM; the held-out set has too few labels to evaluate it"
    ),
    "worse than the current one": gettext_lazy("worse than the current PRM, which was kept"),
    "the reserve has too few labels to compare it with the current one": gettext_lazy(
        "the held-out set has too few labels to compare them; the current PRM was kept"
    ),
    "an alarm rings": gettext_lazy("an audit raised an alarm; the current PRM was kept"),
    "the current one, judged again": gettext_lazy("the current PRM, evaluated again"),
}


@dataclass(frozen=True)
class GenerationRow:
    """One line of the timeline."""

    generation: Generation
    matched: PRMFigure
    length_only: PRMFigure
    f1: PRMFigure
    ece: PRMFigure
    reason: str
    alarms: list[str]
    is_current: bool
    n_unlabeled: int  # draws without a submission


def load_timeline(project: Project) -> list[GenerationRow]:
    rows = Generation.objects.filter(project=project).select_related("candidate").defer("candidate__weights")
    newest = list(rows.order_by("-number")[:50])
    n_unlabeled = _count_unlabeled(project, [each.batch for each in newest if each.batch])
    return [_build_row(each, n_unlabeled.get(each.batch or 0, 0)) for each in newest]


def _count_unlabeled(project: Project, batches: Sequence[int]) -> dict[int, int]:
    """Count the draws without a submission, by batch."""
    submitted = Assignment.objects.submitted().filter(trace=OuterRef("trace"))
    draws = TraceDraw.objects.filter(project=project, batch__in=batches).filter(~Exists(submitted))
    return dict(draws.values_list("batch").annotate(n=Count("pk")).order_by())


def _build_row(generation: Generation, n_unlabeled: int) -> GenerationRow:
    figures = generation.gate.get("figures", {})
    reason = generation.gate.get("why", "")
    return GenerationRow(
        generation=generation,
        matched=build_prm_figure(figures.get(HEADLINE_FIGURE)),
        length_only=build_prm_figure(figures.get("risk_set_auc_length_only")),
        f1=build_prm_figure(figures.get("f1")),
        ece=build_prm_figure(figures.get("ece")),
        reason=str(GATE_REASONS.get(reason, reason)),
        alarms=audits.list_gate_alarms(generation.gate),
        is_current=bool(generation.candidate and generation.candidate.is_current and generation.has_passed),
        n_unlabeled=n_unlabeled,
    )


def load_prm_versions(project: Project) -> list[PRM]:
    rows = PRM.objects.filter(project=project).select_related("registered_by", "made_current_by")
    return list(rows.defer("weights", "secret", "trained").order_by("-version")[:100])


@dataclass(frozen=True)
class ChainStage:
    """One stage of a generation."""

    stage: str
    label: str
    state: str  # done, now, next


@dataclass(frozen=True)
class GenerationProgress:
    """Progress of a generation: its stages, share done, time left, and the job that failed."""

    generation: Generation
    stages: list[ChainStage]
    percent: int
    time_left: str
    failed: Job | None

    @property
    def is_under_way(self) -> bool:
        """False after a failure too: the next step is then the lead's."""
        return self.generation.is_running and self.failed is None


_STAGES = (Stage.SNAPSHOT, Stage.TRAIN, Stage.EVALUATE, Stage.SCORE, Stage.SELECT)


def load_generation_progress(generation: Generation, now: dt.datetime) -> GenerationProgress:
    jobs = generations.jobs_of_generation(generation)
    failed = next((job for job in jobs if job.state == JobState.FAILED), None)
    return GenerationProgress(
        generation,
        list(_build_stages(generation)),
        _compute_percent(generation, jobs),
        _estimate_scoring_time(generation, jobs, now),
        failed,
    )


def _estimate_scoring_time(generation: Generation, jobs: list[Job], now: dt.datetime) -> str:
    """Estimate the time left for scoring, the only stage that takes minutes."""
    is_scoring = generation.stage == Stage.SCORE
    return _estimate_time_left([job for job in jobs if job.kind == generations.SCORE], now) if is_scoring else ""


def _estimate_time_left(shards: list[Job], now: dt.datetime) -> str:
    """Estimate from the pace of running shards, assuming that queued shards are as large."""
    running = [job for job in shards if job.state == JobState.RUNNING and job.total]
    pace = sum(_measure_pace(job, now) for job in running)
    if not pace:
        return ""
    waiting = sum(job.state == JobState.QUEUED for job in shards)
    n_left = sum((job.total or 0) - job.done for job in running) + waiting * max(job.total or 0 for job in running)
    return format_time_left(n_left / pace)


def _measure_pace(job: Job, now: dt.datetime) -> float:
    """Measure the traces per second of this attempt."""
    seconds = (now - job.started_at).total_seconds() if job.started_at else 0.0
    return (job.done - job.done_before) / seconds if seconds > 0 else 0.0


@dataclass(frozen=True)
class RescoringProgress:
    """Progress of the latest scoring run outside a generation."""

    is_under_way: bool
    percent: int
    time_left: str
    failure: str


def load_rescoring_progress(prm: PRM | None, now: dt.datetime) -> RescoringProgress | None:
    if prm is None:
        return None
    shards = Job.objects.filter(subject=f"prm:{prm.pk}", kind=generations.SCORE).order_by("-pk")
    newest = list(shards[: generations.MAX_SHARDS])
    jobs = [job for job in newest if job.asked_at == newest[0].asked_at]
    if not jobs:
        return None
    share = sum(job.share_done() or 0.0 for job in jobs) / len(jobs)
    is_under_way = any(job.state in (JobState.QUEUED, JobState.RUNNING) for job in jobs)
    failure = next((job.failure for job in jobs if job.state == JobState.FAILED), "")
    return RescoringProgress(is_under_way, int(share * 100), _estimate_time_left(jobs, now), failure)


def _build_stages(generation: Generation) -> Iterator[ChainStage]:
    current = _STAGES.index(Stage(generation.stage)) if generation.is_running else len(_STAGES)
    for position, stage in enumerate(_STAGES):
        state = "done" if position < current else "now" if position == current else "next"
        yield ChainStage(stage.value, str(stage.label), state)


def _compute_percent(generation: Generation, jobs: list[Job]) -> int:
    """Weigh the three jobs equally: train and evaluate, score, select."""
    if generation.stage == Stage.DONE:
        return 100
    parts = {kind: [job for job in jobs if job.kind == kind] for kind in _JOB_KINDS}
    shares = [sum(job.share_done() or 0.0 for job in part) / len(part) if part else 0.0 for part in parts.values()]
    if generation.stage == Stage.SELECT and not parts[generations.SCORE]:
        shares[1] = 1.0
    return min(99, round(100 * sum(shares) / 3))


_JOB_KINDS = (generations.TRAIN, generations.SCORE, generations.SELECT)


FIGURE_LABELS: dict[str, Any] = {
    "f1": gettext_lazy("F1 of first errors"),
    "accuracy_erroneous": gettext_lazy("Erroneous traces with the exact step found"),
    "accuracy_correct": gettext_lazy("Correct traces without a false alarm"),
    "auc": gettext_lazy("AUC of steps"),
    "risk_set_auc": gettext_lazy("Risk-set AUC"),
    HEADLINE_FIGURE: gettext_lazy("Length-matched risk-set AUC"),
    "risk_set_auc_length_only": gettext_lazy("Length only, on the same pairs"),
    "ece": gettext_lazy("Calibration error (ECE)"),
    "over_credit": gettext_lazy("Missed errors"),
    "over_blame": gettext_lazy("False alarms"),
    "false_confidence": gettext_lazy("False confidence"),
}


def load_payoff(project: Project) -> dict[str, Any]:
    """Load the latest measurement with its chart, or the reason why it is missing."""
    ended = Generation.objects.filter(project=project, stage=Stage.DONE).order_by("-number")
    payoff: dict[str, Any] = next((each for each in ended.values_list("payoff", flat=True)[:10] if each), {})
    if "labels" not in payoff:
        return {"reason": payoff.get("reason") or _("no drawn trace has been labeled yet"), "pool": payoff.get("pool")}
    return {
        "pool": payoff.get("pool"),
        "chart": _draw_payoff_chart(payoff["points"]),
        "labels": _build_gain(payoff["labels"]),
        "hours": _build_gain(payoff["hours"]),
        "hint": _build_gain(payoff["hint"]) if payoff.get("hint") else None,
        "batch": payoff.get("hint", {}).get("batch"),
        "says_stop": payoff.get("hint", {}).get("says_stop", False),
    }


def load_reading_cost(project: Project) -> dict[str, Any]:
    """Load the cost model of the latest batch; empty before the first batch."""
    batches = Generation.objects.filter(project=project, batch__isnull=False).order_by("-number")
    return batches.values_list("reading", flat=True).first() or {}


def _build_gain(gain: dict[str, Any]) -> PRMFigure:
    return PRMFigure(gain["gain"], gain["low"], gain["high"])


_WIDTH, _HEIGHT, _FLOOR = 760.0, 222.0, 188.0


def _draw_payoff_chart(points: list[dict[str, Any]]) -> Chart:
    """Draw the AUC of both sampling sources over equally many labeled traces of each."""
    name = _("Length-matched AUC on the held-out set by labeled traces per sampling source")
    values = [point[arm] for point in points for arm in ("policy", "uniform")]
    at = choose_ticks(min(values), max(values))
    drawing = Drawing(_WIDTH, _HEIGHT, name)
    up = AxisScale(at[0], at[-1], _FLOOR, 12)
    draw_gridlines(drawing, up, at, 34, 680, number_format.format_share)
    along = AxisScale(0, points[-1]["n"], 44, 660)
    draw_axis_labels(drawing, [along(point["n"]) for point in points], [str(point["n"]) for point in points], 203)
    for arm, css, label in (("uniform", "l2", _("uniform")), ("policy", "l1", _("active"))):
        path = [(along(point["n"]), up(point[arm])) for point in points]
        drawing.line(path, css)
        drawing.dot(path[-1])
        drawing.text((path[-1][0] + 8, path[-1][1] + 4), label, "t" if arm == "policy" else "t2")
    columns = (
        TableColumn(_("Traces per source"), is_number=True),
        TableColumn(_("Active selection"), is_number=True, reads=number_format.format_share),
        TableColumn(_("Uniform sample"), is_number=True, reads=number_format.format_share),
    )
    table = DataTable("payoff", name, columns, [(point["n"], point["policy"], point["uniform"]) for point in points])
    return Chart(drawing.to_svg(), table)
