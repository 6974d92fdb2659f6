"""Monitors: what people and machines detect under each visibility condition, and the shares of the conditions."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from charts.number_format import ValueWithInterval
from dashboard.access import post_view, safe_view
from dashboard.render import project_page
from labeling.models import Project
from labeling.models.visibility import VisibilityCondition
from labeling.projects import visibility
from labeling.projects.visibility import VisibilityRefused
from labeling.quality import monitors
from labeling.quality.monitors import InvalidMonitorQuery, MonitorQuery, MonitorRow, TruthSource, VerdictSource
from people import roles
from people.models import Membership
from people.roles import Action
from stats.estimates import Interval

_SEPARATOR = "="  # no code of a question contains it


class ConditionsForm(forms.Form):
    reasoning_share = forms.FloatField(
        label=gettext_lazy("Share that sees the reasoning only"),
        initial=0.3,
        min_value=0,
        max_value=0.9,
        help_text=gettext_lazy("Actions, observations and the answer are hidden."),
    )
    actions_share = forms.FloatField(
        label=gettext_lazy("Share that sees the actions only"),
        initial=0.3,
        min_value=0,
        max_value=0.9,
        help_text=gettext_lazy("Reasoning is hidden. The rest of the work, at least 0.1, sees both."),
    )


class MonitorsForm(forms.Form):
    """What to compare. The fields of the query string have the names of `MonitorQuery`, except the verdict."""

    verdict = forms.ChoiceField(label=gettext_lazy("Verdict"))
    truth = forms.ChoiceField(label=gettext_lazy("Truth"), choices=TruthSource.choices)
    key = forms.CharField(label=gettext_lazy("Field of the metadata"), max_length=100, required=False)

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["verdict"].choices = [  # type: ignore[attr-defined]  # the stubs know it only on the form's class
            (f"{question.code}{_SEPARATOR}{choice.code}", f"{question.title} {choice.name}")
            for question in monitors.list_verdict_questions(project)
            for choice in question.choices
        ]


@safe_view(Action.READ)
def show_monitors(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render(request, actor)


@post_view(Action.LICENSE)
def start_conditions(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = ConditionsForm(request.POST)
    if not form.is_valid():
        return _render(request, actor, status=422, form=form)
    try:
        visibility.start_visibility(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except VisibilityRefused as error:
        form.add_error(None, str(error))
        return _render(request, actor, status=422, form=form)
    messages.success(request, _("Conditions turned on. Traces already assigned keep their previous setting."))
    return redirect("dashboard:monitors", actor.project.slug)


@post_view(Action.LICENSE)
def stop_conditions(request: HttpRequest, actor: Membership) -> HttpResponse:
    plan = visibility.find_plan(actor.project.pk)
    if plan is not None:
        visibility.stop_visibility(plan=plan, by=actor.user, now=timezone.now())
    messages.success(request, _("Conditions turned off."))
    return redirect("dashboard:monitors", actor.project.slug)


def _render(
    request: HttpRequest, actor: Membership, *, status: int = 200, form: ConditionsForm | None = None
) -> HttpResponse:
    plan = visibility.find_plan(actor.project.pk)
    initial = {name: getattr(plan, name) for name in ("reasoning_share", "actions_share")} if plan else None
    query, query_form = _read_query(request, actor.project)
    if query_form.is_bound and query_form.errors:
        status = 422
    rows = monitors.measure_monitors(actor.project, query) if query else []
    return project_page(
        request,
        actor,
        "dashboard/monitors.html",
        here="judges",
        status=status,
        plan=plan,
        query=query,
        query_form=query_form,
        rows=[_describe_row(row) for row in rows],
        n_unknown=sum(row.n_unknown for row in rows),
        has_questions=bool(monitors.list_verdict_questions(actor.project)),
        form=form or ConditionsForm(initial=initial),
        may_change=roles.membership_may(actor, Action.LICENSE),
    )


def _read_query(request: HttpRequest, project: Project) -> tuple[MonitorQuery | None, MonitorsForm]:
    """Return the query of the address, or the default one, with its form. An invalid address has no query."""
    if "verdict" not in request.GET:
        query = monitors.make_query(project)
        initial = {"verdict": f"{query.question}{_SEPARATOR}{query.yes}", "truth": query.truth} if query else {}
        return query, MonitorsForm(project, initial=initial)
    form = MonitorsForm(project, request.GET)
    if not form.is_valid():
        return None, form
    question, _separator, yes = form.cleaned_data["verdict"].partition(_SEPARATOR)
    truth, key = form.cleaned_data["truth"], form.cleaned_data["key"]
    try:
        return monitors.make_query(project, question=question, yes=yes, truth=truth, key=key), form
    except InvalidMonitorQuery as error:
        form.add_error(error.field, str(error))
        return None, form


def _describe_row(row: MonitorRow) -> dict[str, Any]:
    figures = row.figures
    return {
        "machine": row.machine,
        "condition": row.condition,
        "condition_name": VisibilityCondition(row.condition).label,
        "source": VerdictSource(row.source).label,
        "is_from_steps": row.source == VerdictSource.STEPS,
        "n_positive": figures.tpr.n,
        "n_negative": figures.tnr.n,
        "tpr": _show_value(figures.tpr.value, figures.tpr.interval),
        "tnr": _show_value(figures.tnr.value, figures.tnr.interval),
        "g_mean2": _show_value(figures.g_mean2, figures.interval),
    }


def _show_value(value: float | None, interval: Interval | None) -> ValueWithInterval | None:
    if value is None:
        return None
    return ValueWithInterval(value, *((interval.low, interval.high) if interval else (None, None)))
