"""Set aside labels of an annotator: choose them, preview the effect, and confirm. The decision can be undone."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from dashboard import money, rater_names, render
from dashboard.access import form_view, post_view
from jobs.models import Job
from labeling.models import Assignment, Rater, SetAside
from labeling.quality import set_aside
from labeling.quality.set_aside import LabelScope, NothingToSetAside, SetAsideImpact
from people.models import Membership
from people.roles import Action

ALL, SINCE, SESSION, ONE = "all", "since", "session", "one"


class SetAsideForm(forms.Form):
    """Which labels, and why. `until` is the time of the preview: later labels count."""

    scope = forms.ChoiceField(
        label=_("Labels to set aside"),
        choices=[(ALL, _("All")), (SINCE, _("Since a date")), (SESSION, _("From one session"))],
        initial=ALL,
        widget=forms.RadioSelect,
    )
    since = forms.DateTimeField(
        label=_("Submitted from"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    session = forms.ChoiceField(label=_("Session"), required=False)
    assignment = forms.IntegerField(required=False, widget=forms.HiddenInput)
    until = forms.DateTimeField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=300,
        help_text=_("The reason is logged but not shown to the annotator. Their pay does not change."),
    )

    def __init__(self, *args: Any, rater: Rater, assignment: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rater = rater
        sessions = set_aside.list_sessions(rater_id=rater.pk)
        self.fields["session"].choices = [  # type: ignore[attr-defined]  # it is a ChoiceField
            (f"{each.since.isoformat()}/{each.until.isoformat()}", _label_session(each)) for each in sessions
        ]
        if assignment is not None:
            self.fields["scope"].choices = [(ONE, _("This submission"))]  # type: ignore[attr-defined]  # as above
            self.initial = {"scope": ONE, "assignment": assignment}
            del self.fields["since"], self.fields["session"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        needed = {SINCE: "since", SESSION: "session"}.get(data.get("scope", ""))
        if needed and not data.get(needed):
            self.add_error(needed, _("Enter the start date.") if needed == "since" else _("Choose a session."))
        return data

    def label_scope(self, now: dt.datetime) -> LabelScope:
        data = self.cleaned_data
        until = min(data["until"] or now, now)
        if data["scope"] == ONE:
            return LabelScope(self.rater.pk, until, assignment_id=data["assignment"])
        if data["scope"] == SINCE:
            return LabelScope(self.rater.pk, max(until, data["since"]), since=data["since"])
        if data["scope"] == SESSION:
            since, until = (dt.datetime.fromisoformat(each) for each in data["session"].split("/"))
            return LabelScope(self.rater.pk, until, since=since)
        return LabelScope(self.rater.pk, until)


def _label_session(session: set_aside.LabelSession) -> str:
    since, until = timezone.localtime(session.since), timezone.localtime(session.until)
    times = {"from": f"{since:%Y-%m-%d %H:%M}", "to": f"{until:%H:%M}", "n": session.n_labels}
    return ngettext("%(from)s to %(to)s, %(n)d label", "%(from)s to %(to)s, %(n)d labels", session.n_labels) % times


@dataclass(frozen=True)
class SetAsideRow:
    """A decision to set labels aside, with its progress."""

    set_aside: SetAside
    n_labels: int  # set aside now
    is_running: bool


def list_set_asides(rater: Rater) -> list[SetAsideRow]:
    decisions = SetAside.objects.filter(rater=rater).select_related("made_by", "undone_by")
    rows = list(decisions.order_by("-made_at", "-pk")[:20])
    if not rows:
        return []
    unfinished = Job.objects.unfinished().filter(kind=set_aside.KIND, subject=f"project:{rater.project_id}")
    running = set(unfinished.values_list("arguments__set_aside", flat=True))
    return [SetAsideRow(row, row.assignments.count(), row.pk in running) for row in rows]


@form_view(Action.PAUSE)
def set_labels_aside(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    """Ask which labels, show the effect, and set them aside after it is confirmed."""
    row = _get_rater(actor, rater)
    assignment = _parse_assignment(row, (request.POST or request.GET).get("assignment"))
    if request.method != "POST":
        return _render_form(request, actor, SetAsideForm(rater=row, assignment=assignment))
    form, now = SetAsideForm(request.POST, rater=row, assignment=assignment), timezone.now()
    if not form.is_valid():
        return _render_form(request, actor, form, status=422)
    scope = form.label_scope(now)
    if "confirmed" not in request.POST:
        return _render_preview(request, actor, form, scope)
    try:
        set_aside.set_aside_labels(
            project=actor.project, scope=scope, reason=form.cleaned_data["reason"], by=actor.user, now=now
        )
    except NothingToSetAside as error:
        return _render_form(request, actor, form, status=422, problem=str(error))
    messages.success(
        request, _("Labels set aside. Traces are being settled again in the background. You can undo this here.")
    )
    return redirect("dashboard:annotator", actor.project.slug, row.pk)


@post_view(Action.PAUSE)
def undo_set_aside(request: HttpRequest, actor: Membership, set_aside_id: int) -> HttpResponse:
    row = get_object_or_404(SetAside, project=actor.project, pk=set_aside_id)
    if set_aside.undo_set_aside(set_aside=row, by=actor.user, now=timezone.now()):
        messages.success(
            request, _("Undone. The labels count again, and traces are being settled again in the background.")
        )
    return redirect("dashboard:annotator", actor.project.slug, row.rater_id)


def _get_rater(actor: Membership, rater: int) -> Rater:
    return get_object_or_404(Rater.objects.select_related("project", "user"), project=actor.project, pk=rater)


def _parse_assignment(rater: Rater, text: str | None) -> int | None:
    if not text or not text.isdecimal() or len(text) > 18:
        return None
    return get_object_or_404(Assignment, rater=rater, pk=int(text)).pk


def _render_form(
    request: HttpRequest, actor: Membership, form: SetAsideForm, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    name = rater_names.get_display_name(form.rater, actor)
    context: dict[str, Any] = {"form": form, "rater": form.rater, "name": name, "problem": problem}
    return render.project_page(request, actor, "dashboard/set_aside.html", here="annotators", status=status, **context)


def _render_preview(request: HttpRequest, actor: Membership, form: SetAsideForm, scope: LabelScope) -> HttpResponse:
    impact = set_aside.measure_impact(project=actor.project, scope=scope)
    if not impact.n_labels:
        return _render_form(request, actor, form, status=422, problem=str(NothingToSetAside()))
    return render.project_page(
        request,
        actor,
        "dashboard/confirm_set_aside.html",
        here="annotators",
        rater=form.rater,
        name=rater_names.get_display_name(form.rater, actor),
        form=form,
        until=scope.until.isoformat(),
        impact=impact,
        cost=_format_cost(actor, impact),
    )


def _format_cost(actor: Membership, impact: SetAsideImpact) -> str:
    """Return the cost of the labels to collect again, or "" if pay or times are unknown."""
    if impact.ms_per_label is None or actor.project.pay_per_hour is None:
        return ""
    cost = money.compute_labor_cost(actor.project, impact.n_missing * impact.ms_per_label)
    return money.format_amount(actor.project, cost)
