"""Generations and PRMs: start and follow a generation, register and choose a PRM, change selection rules."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.db.models import Count, Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from charts import number_format
from charts.svg import AxisScale, Drawing, draw_axis_labels, draw_value_axis
from dashboard.access import post_view, safe_view
from dashboard.figures import Chart, DataTable, number_columns
from dashboard.render import project_page
from dashboard.time_left import format_time_left
from dashboard.views.prms import (
    GATE_REASONS,
    HEADLINE_FIGURE,
    PRMFigure,
    build_gate_power,
    build_prm_figure,
    get_prm,
    list_gate_alarms,
)
from exports.models import Snapshot
from formats import integers
from jobs import control
from jobs.models import Job, JobState
from labeling.models import Assignment, Manifest, Project, TraceDraw
from labeling.models.rater import RaterKind
from people import roles
from people.models import Membership
from people.roles import Action
from prm import generations, registry, scores
from prm.models import PRM, Generation, LoopRules
from prm.models.generation import MAX_GATE_MARGIN, Stage
from prm.models.prm import BackendKind, SemanticsKind
from prm.registry import PRMIdentity
from prm.selection import acquisitions

_EXTERNAL_BACKENDS = [(each.value, each.label) for each in BackendKind if each is not BackendKind.BUILTIN]


class RegisterPRMForm(forms.Form):
    backend = forms.ChoiceField(label=gettext_lazy("Backend"), choices=_EXTERNAL_BACKENDS)
    model = forms.CharField(
        label=gettext_lazy("Model"),
        max_length=200,
        help_text=gettext_lazy("The name that the backend uses for the model."),
    )
    digest = forms.CharField(label=gettext_lazy("Hash of the weights"), max_length=100, required=False)
    address = forms.CharField(label=gettext_lazy("URL"), max_length=500, required=False, help_text="http://gpu:8000")
    style = forms.ChoiceField(
        label=gettext_lazy("Style (vLLM)"),
        choices=[("qwen", "Qwen2.5-Math-PRM"), ("math_shepherd", "Math-Shepherd")],
        required=False,
    )
    semantics = forms.ChoiceField(label=gettext_lazy("Meaning of the scores"), choices=SemanticsKind.choices)
    trained_on = forms.ModelChoiceField(
        label=gettext_lazy("Training snapshot"),
        queryset=Snapshot.objects.none(),
        required=False,
        empty_label=gettext_lazy("not stated"),
        help_text=gettext_lazy("Lets the audits detect contamination of the held-out set."),
    )
    secret = forms.CharField(
        label=gettext_lazy("Access token"),
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Stored encrypted and never shown again."),
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        snapshots = Snapshot.objects.filter(project=project, built_at__isnull=False).order_by("-asked_at")
        cast("forms.ModelChoiceField[Snapshot]", self.fields["trained_on"]).queryset = snapshots

    @property
    def manifest(self) -> Manifest | None:
        snapshot: Snapshot | None = self.cleaned_data["trained_on"]
        return snapshot.manifest if snapshot else None

    def identity(self) -> PRMIdentity:
        data = self.cleaned_data
        options = {"style": data["style"]} if data["backend"] == BackendKind.VLLM and data["style"] else {}
        names = ("backend", "model", "digest", "semantics", "address", "secret")
        return PRMIdentity(**{name: data[name] for name in names}, options=options)


class SelectionRulesForm(forms.Form):
    acquisition = forms.ChoiceField(label=gettext_lazy("Select traces by"))
    batch_size = forms.IntegerField(label=gettext_lazy("Traces per batch"), min_value=1, max_value=100_000)
    temperature = forms.FloatField(
        label=gettext_lazy("Temperature"),
        min_value=0.001,
        max_value=10,
        help_text=gettext_lazy("Default 0.1. Higher values make the selection more random."),
    )
    domain_quota = forms.FloatField(label=gettext_lazy("Maximum share per domain"), min_value=0.01, max_value=1)
    gate_margin = forms.FloatField(
        label=gettext_lazy("Gate margin"),
        min_value=0.001,
        max_value=MAX_GATE_MARGIN,
        help_text=gettext_lazy(
            "How much length-matched AUC a new PRM may lose compared with the current one. Default 0.05."
        ),
    )
    has_one_per_problem = forms.BooleanField(
        label=gettext_lazy("At most one trace per problem in a batch"), required=False
    )
    every_n_submissions = forms.IntegerField(
        label=gettext_lazy("Start automatically after this many submissions"),
        min_value=1,
        max_value=1_000_000_000,
        required=False,
        help_text=gettext_lazy("Leave empty to start generations manually."),
    )

    def __init__(self, rules: LoopRules, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = dict.fromkeys([*acquisitions.ACQUISITIONS, rules.acquisition])  # may be the project's own function
        field = cast(forms.ChoiceField, self.fields["acquisition"])
        field.choices = [
            (name, name.replace("_", " ") if name in acquisitions.ACQUISITIONS else name) for name in names
        ]


def load_timeline(project: Project) -> list[dict[str, Any]]:
    """Load the newest generations, each with its figures, its alarms, and its draws without a submission."""
    rows = Generation.objects.filter(project=project).select_related("candidate").defer("candidate__weights")
    newest = list(rows.order_by("-number")[:50])
    n_unlabeled = _count_unlabeled(project, [each.batch for each in newest if each.batch])
    return [_build_row(each, n_unlabeled.get(each.batch or 0, 0)) for each in newest]


def _count_unlabeled(project: Project, batches: Sequence[int]) -> dict[int, int]:
    """Count the draws without a submission of a person, by batch."""
    submitted = Assignment.objects.submitted().filter(trace=OuterRef("trace")).exclude(rater__kind=RaterKind.MACHINE)
    draws = TraceDraw.objects.filter(project=project, batch__in=batches).filter(~Exists(submitted))
    return dict(draws.values_list("batch").annotate(n=Count("pk")).order_by())


def _build_row(generation: Generation, n_unlabeled: int) -> dict[str, Any]:
    figures, reason = generation.gate.get("figures", {}), generation.gate.get("why", "")
    return {
        "generation": generation,
        "matched": build_prm_figure(figures.get(HEADLINE_FIGURE)),
        "length_only": build_prm_figure(figures.get("risk_set_auc_length_only")),
        "f1": build_prm_figure(figures.get("f1")),
        "ece": build_prm_figure(figures.get("ece")),
        "reason": GATE_REASONS.get(reason, reason),
        "power": build_gate_power(generation.gate),
        "alarms": list_gate_alarms(generation.gate),
        "is_current": bool(
            generation.candidate and generation.candidate.is_current and generation.verdict == "accepted"
        ),
        "n_unlabeled": n_unlabeled,
    }


def load_prm_versions(project: Project) -> list[PRM]:
    rows = PRM.objects.filter(project=project).select_related("registered_by", "made_current_by")
    return list(rows.defer("weights", "secret", "trained").order_by("-version")[:100])


@dataclass(frozen=True)
class GenerationProgress:
    """Progress of a generation: its stages, share done, time left, and the job that failed."""

    generation: Generation
    stages: list[tuple[str, str]]  # the label and "done", "now" or "next"
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
        _build_stages(generation),
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


def load_rescoring_progress(prm: PRM | None, now: dt.datetime) -> dict[str, Any] | None:
    """Load the progress of the latest scoring run outside a generation."""
    if prm is None:
        return None
    shards = Job.objects.filter(subject=f"prm:{prm.pk}", kind=generations.SCORE).order_by("-pk")
    newest = list(shards[: generations.MAX_SHARDS])
    jobs = [job for job in newest if job.asked_at == newest[0].asked_at]
    if not jobs:
        return None
    share = sum(job.share_done() or 0.0 for job in jobs) / len(jobs)
    return {
        "is_under_way": any(job.state in (JobState.QUEUED, JobState.RUNNING) for job in jobs),
        "percent": int(share * 100),
        "time_left": _estimate_time_left(jobs, now),
        "failure": next((job.failure for job in jobs if job.state == JobState.FAILED), ""),
    }


def _build_stages(generation: Generation) -> list[tuple[str, str]]:
    current = _STAGES.index(Stage(generation.stage)) if generation.is_running else len(_STAGES)
    states = ["done"] * current + ["now"] + ["next"] * len(_STAGES)
    return [(str(stage.label), state) for stage, state in zip(_STAGES, states, strict=False)]


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


def load_payoff(project: Project) -> dict[str, Any]:
    """Load the latest measurement with its chart, or the reason why it is missing."""
    ended = Generation.objects.filter(project=project, stage=Stage.DONE).order_by("-number")
    payoff: dict[str, Any] = next((each for each in ended.values_list("payoff", flat=True)[:10] if each), {})
    if "labels" not in payoff:
        return {
            "reason": payoff.get("reason") or _("none of the drawn traces has been labeled yet"),
            "pool": payoff.get("pool"),
        }
    return {
        "pool": payoff.get("pool"),
        "chart": _draw_payoff_chart(payoff["points"]),
        "labels": _build_gain(payoff["labels"]),
        "hours": _build_gain(payoff["hours"]),
        "hint": _build_gain(payoff["hint"]) if "gain" in payoff.get("hint", {}) else None,
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
    drawing, reads = Drawing(_WIDTH, _HEIGHT, name), number_format.format_share
    up, _left = draw_value_axis(
        drawing, min(values), max(values), floor=_FLOOR, top=12, left=34, right=680, reads=reads
    )
    along = AxisScale(0, points[-1]["n"], 44, 660)
    draw_axis_labels(drawing, [along(point["n"]) for point in points], [str(point["n"]) for point in points], 203)
    for arm, css, label in (("uniform", "l2", _("uniform")), ("policy", "l1", _("active"))):
        path = [(along(point["n"]), up(point[arm])) for point in points]
        drawing.line(path, css)
        drawing.dot(path[-1])
        drawing.text((path[-1][0] + 8, path[-1][1] + 4), label, "t" if arm == "policy" else "t2")
    columns = [
        *number_columns(_("Traces per source")),
        *number_columns(_("Active selection"), _("Uniform sample"), reads=number_format.format_share),
    ]
    table = DataTable("payoff", name, columns, [(point["n"], point["policy"], point["uniform"]) for point in points])
    return Chart(drawing.to_svg(), table)


@safe_view(Action.READ)
def show_generations(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_generations(request, actor)


@safe_view(Action.READ)
def show_generation_progress(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Render the progress panel. Once the generation has ended, make htmx reload the whole page."""
    newest = get_object_or_404(Generation.objects.filter(project=actor.project).order_by("-number")[:1])
    progress = load_generation_progress(newest, timezone.now())
    may_train = roles.membership_may(actor, Action.TRAIN)
    context = {"project": actor.project, "progress": progress, "may_train": may_train}
    response = render(request, "dashboard/generations/_progress.html", context)
    if not progress.is_under_way:
        response["HX-Refresh"] = "true"
    return response


@post_view(Action.TRAIN)
def start_generation(request: HttpRequest, actor: Membership) -> HttpResponse:
    version = request.POST.get("candidate")
    candidate = get_prm(actor, integers.parse_integer(version, digits=9)) if version else None
    try:
        generations.start_generation(project=actor.project, by=actor.user, now=timezone.now(), candidate=candidate)
    except generations.AlreadyRunning as error:
        return _render_generations(request, actor, status=422, problem=str(error))
    return redirect("dashboard:generations", actor.project.slug)


@post_view(Action.TRAIN)
def stop_generation(request: HttpRequest, actor: Membership, number: int) -> HttpResponse:
    generation = get_object_or_404(Generation, project=actor.project, number=number)
    try:
        generations.stop_generation(generation=generation, by=actor.user, now=timezone.now())
    except generations.NotRunning as error:
        return _render_generations(request, actor, status=422, problem=str(error))
    messages.success(request, _("Generation %(n)d stopped.") % {"n": number})
    return redirect("dashboard:generations", actor.project.slug)


@post_view(Action.TRAIN)
def retry_generation(request: HttpRequest, actor: Membership, number: int) -> HttpResponse:
    generation = get_object_or_404(Generation, project=actor.project, number=number)
    try:
        generations.retry_generation(generation=generation, by=actor.user, now=timezone.now())
    except control.JobNotRetryable:
        return _render_generations(
            request,
            actor,
            status=422,
            problem=_("No jobs in this generation have failed, so there is nothing to retry."),
        )
    return redirect("dashboard:generations", actor.project.slug)


@post_view(Action.TRAIN)
def roll_back_prm(request: HttpRequest, actor: Membership) -> HttpResponse:
    try:
        prm = registry.roll_back(project=actor.project, by=actor.user, now=timezone.now())
    except registry.NothingToRollBackTo as error:
        return _render_generations(request, actor, status=422, problem=str(error))
    messages.success(request, _("Rolled back to PRM %(n)d. Its scores are available again.") % {"n": prm.version})
    return redirect("dashboard:generations", actor.project.slug)


@post_view(Action.TRAIN)
def register_prm(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = RegisterPRMForm(actor.project, request.POST)
    if not form.is_valid():
        return _render_generations(request, actor, status=422, register_form=form)
    try:
        prm = registry.register_prm(
            project=actor.project, identity=form.identity(), by=actor.user, now=timezone.now(), manifest=form.manifest
        )
    except registry.NotRegistrable as error:
        return _render_generations(request, actor, status=422, register_form=form, problem=str(error))
    messages.success(request, _("Registered as PRM %(n)d. Start a generation to evaluate it.") % {"n": prm.version})
    return redirect("dashboard:generations", actor.project.slug)


@post_view(Action.TRAIN)
def change_selection_rules(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = SelectionRulesForm(generations.load_loop_rules(actor.project), request.POST)
    if not form.is_valid():
        return _render_generations(request, actor, status=422, rules_form=form)
    try:
        generations.change_loop_rules(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except generations.InvalidLoopRule as error:
        return _render_generations(request, actor, status=422, rules_form=form, problem=str(error))
    messages.success(request, _("Saved. The next batch uses these settings."))
    return redirect("dashboard:generations", actor.project.slug)


@post_view(Action.TRAIN)
def score_stale_traces(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Score the traces that the current PRM has not scored."""
    prm = registry.current_prm(actor.project_id)
    if prm is None or not scores.request_scoring(prm=prm, by=actor.user, now=timezone.now()):
        return _render_generations(
            request, actor, status=422, problem=_("All traces are scored, or scoring is already running.")
        )
    messages.success(request, _("Scoring started."))
    return redirect("dashboard:generations", actor.project.slug)


def _render_generations(request: HttpRequest, actor: Membership, *, status: int = 200, **context: Any) -> HttpResponse:
    project, rules = actor.project, generations.load_loop_rules(actor.project)
    numbers = Generation.objects.filter(project=project).order_by("-number").values_list("number", flat=True)
    running = generations.running_generation(project)
    payoff, freshness = load_payoff(project), scores.cached_freshness(project)
    return project_page(
        request,
        actor,
        "dashboard/generations.html",
        here="generations",
        status=status,
        tables=[payoff["chart"].table] if "chart" in payoff else [],
        freshness=freshness,
        rescoring=load_rescoring_progress(freshness.prm if freshness.n_stale else None, timezone.now()),
        timeline=load_timeline(project),
        versions=load_prm_versions(project),
        progress=load_generation_progress(running, timezone.now()) if running else None,
        n_new=generations.count_new_submissions(project),
        next_number=(numbers.first() or 0) + 1,
        payoff=payoff,
        cost=load_reading_cost(project),
        rules=rules,
        may_train=roles.membership_may(actor, Action.TRAIN),
        **{
            "register_form": RegisterPRMForm(project),
            "rules_form": SelectionRulesForm(rules, initial=vars(rules)),
            **context,
        },
    )
