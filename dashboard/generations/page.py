"""A project's PRMs and generations as a lead reads them. Reads alone."""

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
from dashboard.jobs import page
from dashboard.tables import DataTable, TableColumn
from jobs.models import Job, JobState
from labeling.models import Assignment, Project, TraceDraw
from prm import generations
from prm.models import PRM, Generation
from prm.models.generation import Stage

HEADLINE_FIGURE = "risk_set_auc_length_matched"
GATE_REASONS: dict[str, Any] = {
    "better than the current one": gettext_lazy("better than the one before"),
    "not worse than the current one beyond its interval": gettext_lazy("not worse than the one before"),
    "the first one": gettext_lazy("first from own labels"),
    "the first one; the reserve has too few labels to judge it": gettext_lazy(
        "first; the reserve has too few labels to judge it"
    ),
    "worse than the current one": gettext_lazy("worse than the current one, which stayed"),
    "the reserve has too few labels to compare it with the current one": gettext_lazy(
        "the reserve has too few labels to compare it; the current one stayed"
    ),
    "an alarm rings": gettext_lazy("an alarm of the audits rings; nothing was replaced"),
    "the current one, judged again": gettext_lazy("the current one, judged again"),
}


@dataclass(frozen=True)
class GenerationRow:
    """One line of the timeline."""

    generation: Generation
    matched: PRMFigure
    alone: PRMFigure
    f1: PRMFigure
    ece: PRMFigure
    why: str
    alarms: list[str]  # in words, with what else the gate was told
    is_current: bool
    n_unread: int  # draws that nobody has finished reading


def load_timeline(project: Project) -> list[GenerationRow]:
    found = Generation.objects.filter(project=project).select_related("candidate").defer("candidate__weights")
    shown = list(found.order_by("-number")[:50])
    unread = _count_unread(project, [each.batch for each in shown if each.batch])
    return [_build_row(each, unread.get(each.batch or 0, 0)) for each in shown]


def _count_unread(project: Project, batches: Sequence[int]) -> dict[int, int]:
    """Of these, not of all that was ever drawn; what was drawn and not read is told, not dropped."""
    read = Assignment.objects.submitted().filter(trace=OuterRef("trace"))
    draws = TraceDraw.objects.filter(project=project, batch__in=batches).filter(~Exists(read))
    return dict(draws.values_list("batch").annotate(n=Count("pk")).order_by())


def _build_row(generation: Generation, n_unread: int) -> GenerationRow:
    figures = generation.gate.get("figures", {})
    why = generation.gate.get("why", "")
    return GenerationRow(
        generation=generation,
        matched=build_prm_figure(figures.get(HEADLINE_FIGURE)),
        alone=build_prm_figure(figures.get("risk_set_auc_length_only")),
        f1=build_prm_figure(figures.get("f1")),
        ece=build_prm_figure(figures.get("ece")),
        why=str(GATE_REASONS.get(why, why)),
        alarms=audits.list_gate_alarms(generation.gate),
        is_current=bool(generation.candidate and generation.candidate.is_current and generation.has_passed),
        n_unread=n_unread,
    )


def load_prm_versions(project: Project) -> list[PRM]:
    found = PRM.objects.filter(project=project).select_related("registered_by", "made_current_by")
    return list(found.defer("weights", "secret", "trained").order_by("-version")[:100])


@dataclass(frozen=True)
class ChainStage:
    """One link of the chain that a generation goes through."""

    stage: str
    label: str
    state: str  # done, now, next


@dataclass(frozen=True)
class GenerationProgress:
    """How far the generation has come: its chain, the share of the stage, how long that still takes, what failed."""

    generation: Generation
    chain: list[ChainStage]
    percent: int
    remaining: str
    failed: Job | None


_STAGES = (Stage.SNAPSHOT, Stage.TRAIN, Stage.EVALUATE, Stage.SCORE, Stage.SELECT)


def load_generation_progress(generation: Generation, now: dt.datetime) -> GenerationProgress:
    jobs = generations.jobs_of_generation(generation)
    failed = next((job for job in jobs if job.state == JobState.FAILED), None)
    return GenerationProgress(
        generation,
        list(_build_chain(generation)),
        _compute_percent(generation, jobs),
        _estimate_scoring_time(generation, jobs, now),
        failed,
    )


def _estimate_scoring_time(generation: Generation, jobs: list[Job], now: dt.datetime) -> str:
    """Of the scoring, the one stage that takes minutes."""
    is_scoring = generation.stage == Stage.SCORE
    return _estimate_time_left([job for job in jobs if job.kind == generations.SCORE], now) if is_scoring else ""


def _estimate_time_left(shards: list[Job], now: dt.datetime) -> str:
    """What is left of all of them, at the pace of those that run. Those that wait are as large as the others."""
    running = [job for job in shards if job.state == JobState.RUNNING and job.total]
    pace = sum(_measure_pace(job, now) for job in running)
    if not pace:
        return ""
    waiting = sum(job.state == JobState.QUEUED for job in shards)
    left = sum((job.total or 0) - job.done for job in running) + waiting * max(job.total or 0 for job in running)
    return page.format_time_left(left / pace)


def _measure_pace(job: Job, now: dt.datetime) -> float:
    """Traces a second of this attempt."""
    seconds = (now - job.started_at).total_seconds() if job.started_at else 0.0
    return (job.done - job.done_before) / seconds if seconds > 0 else 0.0


@dataclass(frozen=True)
class RescoringProgress:
    """Scoring outside of any generation, as it was asked for last: how far it is, or why it failed."""

    is_under_way: bool
    percent: int
    remaining: str
    failure: str


def load_rescoring_progress(prm: PRM | None, now: dt.datetime) -> RescoringProgress | None:
    if prm is None:
        return None
    found = Job.objects.filter(subject=f"prm:{prm.pk}", kind=generations.SCORE).order_by("-pk")
    newest = list(found[: generations.MAX_SHARDS])
    jobs = [job for job in newest if job.asked_at == newest[0].asked_at]
    if not jobs:
        return None
    share = sum(job.share_done() or 0.0 for job in jobs) / len(jobs)
    is_under_way = any(job.state in (JobState.QUEUED, JobState.RUNNING) for job in jobs)
    failure = next((job.failure for job in jobs if job.state == JobState.FAILED), "")
    return RescoringProgress(is_under_way, int(share * 100), _estimate_time_left(jobs, now), failure)


def _build_chain(generation: Generation) -> Iterator[ChainStage]:
    at = _STAGES.index(Stage(generation.stage)) if generation.is_running else len(_STAGES)
    for place, stage in enumerate(_STAGES):
        yield ChainStage(stage.value, str(stage.label), "done" if place < at else "now" if place == at else "next")


def _compute_percent(generation: Generation, jobs: list[Job]) -> int:
    """Three jobs count alike: train and judge, score, select."""
    if generation.stage == Stage.DONE:
        return 100
    parts = {kind: [job for job in jobs if job.kind == kind] for kind in _JOB_KINDS}
    shares = [sum(job.share_done() or 0.0 for job in found) / len(found) if found else 0.0 for found in parts.values()]
    if generation.stage == Stage.SELECT and not parts[generations.SCORE]:
        shares[1] = 1.0
    return min(99, round(100 * sum(shares) / 3))


_JOB_KINDS = (generations.TRAIN, generations.SCORE, generations.SELECT)


FIGURE_LABELS: dict[str, Any] = {
    "f1": gettext_lazy("F1 of first errors"),
    "accuracy_erroneous": gettext_lazy("Erroneous traces: the very step found"),
    "accuracy_correct": gettext_lazy("Correct traces left in peace"),
    "auc": gettext_lazy("AUC of steps"),
    "risk_set_auc": gettext_lazy("Risk-set AUC"),
    HEADLINE_FIGURE: gettext_lazy("Length-matched risk-set AUC"),
    "risk_set_auc_length_only": gettext_lazy("Length alone on the same pairs"),
    "ece": gettext_lazy("Calibration error (ECE)"),
    "over_credit": gettext_lazy("Wrong steps let pass"),
    "over_blame": gettext_lazy("Right steps blamed"),
    "false_confidence": gettext_lazy("Wrong steps it is sure of"),
}


def load_payoff(project: Project) -> dict[str, Any]:
    """The latest measurement, with its chart; a reason where there is none yet."""
    ended = Generation.objects.filter(project=project, stage=Stage.DONE).order_by("-number")
    told: dict[str, Any] = next((each for each in ended.values_list("payoff", flat=True)[:10] if each), {})
    if "labels" not in told:
        return {"reason": told.get("reason") or _("nothing was drawn and read yet"), "pool": told.get("pool")}
    return {
        "pool": told.get("pool"),
        "chart": _draw_payoff_chart(told["points"]),
        "labels": _build_gain(told["labels"]),
        "hours": _build_gain(told["hours"]),
        "hint": _build_gain(told["hint"]) if told.get("hint") else None,
        "batch": told.get("hint", {}).get("batch"),
        "says_stop": told.get("hint", {}).get("says_stop", False),
    }


def load_reading_cost(project: Project) -> dict[str, Any]:
    """What the latest batch took reading to cost; nothing before the first one."""
    drawn = Generation.objects.filter(project=project, batch__isnull=False).order_by("-number")
    return drawn.values_list("reading", flat=True).first() or {}


def _build_gain(told: dict[str, Any]) -> PRMFigure:
    return PRMFigure(told["gain"], told["low"], told["high"])


_WIDTH, _HEIGHT, _FLOOR = 760.0, 222.0, 188.0


def _draw_payoff_chart(points: list[dict[str, Any]]) -> Chart:
    """Two lines over equally many traces of each arm; they bear their names."""
    name = _("Length-matched AUC on the reserve by traces labelled in each arm")
    values = [point[arm] for point in points for arm in ("policy", "uniform")]
    at = choose_ticks(min(values), max(values))
    drawing = Drawing(_WIDTH, _HEIGHT, name)
    up = AxisScale(at[0], at[-1], _FLOOR, 12)
    draw_gridlines(drawing, up, at, 34, 680, number_format.format_share)
    along = AxisScale(0, points[-1]["n"], 44, 660)
    draw_axis_labels(drawing, [along(point["n"]) for point in points], [str(point["n"]) for point in points], 203)
    for arm, css, label in (("uniform", "l2", _("uniform")), ("policy", "l1", _("policy"))):
        path = [(along(point["n"]), up(point[arm])) for point in points]
        drawing.line(path, css)
        drawing.dot(path[-1])
        drawing.word((path[-1][0] + 8, path[-1][1] + 4), label, "t" if arm == "policy" else "t2")
    columns = (
        TableColumn(_("Traces of each arm"), is_number=True),
        TableColumn(_("Policy"), is_number=True, reads=number_format.format_share),
        TableColumn(_("Uniform"), is_number=True, reads=number_format.format_share),
    )
    table = DataTable("payoff", name, columns, [(point["n"], point["policy"], point["uniform"]) for point in points])
    return Chart(drawing.done(), table)
