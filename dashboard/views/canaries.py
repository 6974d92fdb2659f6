"""Gaming canaries: freeze a set, let PRMs score it, and compare all versions of PRMs and judges on it."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.access import post_view, safe_view
from dashboard.canary_figures import CanarySummary, build_canary_summary
from dashboard.render import project_page
from jobs.models import Job
from labeling.models import Project
from machines import canary_reports
from machines.canary_reports import CanaryResult
from machines.models import JUDGE_CONTRACTS, Judge
from people import roles
from people.models import Membership
from people.roles import Action
from prm import canaries
from prm.canaries import CanariesRefused
from prm.models import PRM
from prm.models.canary import CanaryEditKind
from prm.models.prm import BackendKind

_MAX_JUDGES = 50


class FreezeForm(forms.Form):
    n = forms.IntegerField(
        label=gettext_lazy("Edits"),
        initial=canaries.DEFAULT_SIZE,
        min_value=canaries.MIN_EDITS,
        max_value=canaries.MAX_SIZE,
        help_text=gettext_lazy("A judge is asked about each edited solution, and about each original once."),
    )


class ScoreForm(forms.Form):
    prm = forms.ModelChoiceField(label=gettext_lazy("PRM"), queryset=PRM.objects.none())

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = PRM.objects.filter(project=project).exclude(backend=BackendKind.PUSHED).defer("weights", "trained")
        self.fields["prm"].queryset = rows.order_by("-version")  # type: ignore[attr-defined]  # a ModelChoiceField


@dataclass(frozen=True)
class CanaryRow:
    result: CanaryResult
    summary: CanarySummary | None


@safe_view(Action.READ)
def show_canaries(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_canaries(request, actor)


@post_view(Action.TRAIN)
def freeze_canaries(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = FreezeForm(request.POST)
    if not form.is_valid():
        return _render_canaries(request, actor, status=422, freeze_form=form)
    try:
        canaries.freeze_canaries(project=actor.project, by=actor.user, now=timezone.now(), n=form.cleaned_data["n"])
    except CanariesRefused as error:
        return _render_canaries(request, actor, status=422, problem=str(error), freeze_form=form)
    messages.success(request, _("Canaries frozen."))
    return redirect("dashboard:canaries", actor.project.slug)


@post_view(Action.TRAIN)
def score_canaries(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = ScoreForm(actor.project, request.POST, auto_id="id_score_%s")
    if not form.is_valid():
        return _render_canaries(request, actor, status=422, score_form=form)
    try:
        canaries.request_scores(prm=form.cleaned_data["prm"], by=actor.user, now=timezone.now())
    except CanariesRefused as error:
        return _render_canaries(request, actor, status=422, problem=str(error), score_form=form)
    messages.success(request, _("The PRM is scoring the canaries."))
    return redirect("dashboard:canaries", actor.project.slug)


def _render_canaries(
    request: HttpRequest,
    actor: Membership,
    *,
    status: int = 200,
    problem: str = "",
    freeze_form: FreezeForm | None = None,
    score_form: ScoreForm | None = None,
) -> HttpResponse:
    row = canaries.find_set(actor.project_id)
    counts = canaries.count_edits(row) if row else {}
    results = canary_reports.list_results(actor.project)
    subjects = [f"prm:{pk}" for pk in PRM.objects.filter(project=actor.project).values_list("pk", flat=True)]
    return project_page(
        request,
        actor,
        "dashboard/canaries.html",
        here="judges",
        status=status,
        canary_set=row,
        counts=[(kind.label, counts[kind]) for kind in CanaryEditKind if kind in counts],
        n_edits=sum(counts.values()),
        n_texts=row.canaries.count() if row else 0,
        rows=[CanaryRow(each, build_canary_summary(each.report)) for each in results],
        is_polling=Job.objects.unfinished().filter(kind=canaries.KIND, subject__in=subjects).exists(),
        judges=Judge.objects.filter(project=actor.project, contract__in=JUDGE_CONTRACTS)
        .defer("key", "prompt")
        .order_by("name", "-version")[:_MAX_JUDGES],
        problem=problem,
        freeze_form=freeze_form or FreezeForm(),
        score_form=score_form or ScoreForm(actor.project, auto_id="id_score_%s"),
        may_train=roles.membership_may(actor, Action.TRAIN),
    )
