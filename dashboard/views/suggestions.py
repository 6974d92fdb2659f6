"""Suggestions: the setting, and what seeing a machine's labels does to raters."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from charts.number_format import ValueWithInterval
from dashboard.access import post_view, safe_view
from dashboard.render import project_page
from formats import integers
from labeling.models import Project, Rater
from labeling.models.suggestion import SuggestionEnd
from labeling.projects import suggestions
from labeling.projects.suggestions import SuggestionsRefused
from labeling.quality import suggestion_effects
from labeling.quality.suggestion_effects import ArmEffects, PlanEffects
from machines import consensus_report
from people import roles
from people.models import Membership
from people.roles import Action
from stats import exposure_effects
from stats.exposure_effects import ShareEffect


class SuggestionsForm(forms.Form):
    machine = forms.ModelChoiceField(label=gettext_lazy("Machine"), queryset=Rater.objects.none())
    reveal_share = forms.FloatField(
        label=gettext_lazy("Share shown after the first answer"),
        initial=0.25,
        min_value=0,
        max_value=0.9,
        help_text=gettext_lazy("The label of a step appears after the annotator has rated it."),
    )
    suggest_share = forms.FloatField(
        label=gettext_lazy("Share shown before the answer"),
        initial=0.25,
        min_value=0,
        max_value=0.9,
        help_text=gettext_lazy(
            "All labels are there from the start. The rest stays blind: at least 0.1; half finds harm sooner."
        ),
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        machines = [each.pk for each in consensus_report.list_machines(project)]
        field = self.fields["machine"]
        field.queryset = Rater.objects.filter(pk__in=machines)  # type: ignore[attr-defined]  # the stubs know it only on the form's class
        field.label_from_instance = lambda rater: rater.machine  # type: ignore[attr-defined]  # as above


@dataclass(frozen=True)
class EffectRow:
    """One effect of one arm, formatted."""

    name: str
    label: str
    exposed: str
    n: int
    blind: str
    n_blind: int
    effect: ValueWithInterval | None  # None if it is not defined yet
    power: float | None
    n_needed: int | None = None


@safe_view(Action.READ)
def show_suggestions(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render(request, actor)


@post_view(Action.LICENSE)
def start_suggestions(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = SuggestionsForm(actor.project, request.POST)
    if not form.is_valid():
        return _render(request, actor, status=422, form=form)
    try:
        suggestions.start_suggestions(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except SuggestionsRefused as error:
        form.add_error(None, str(error))
        return _render(request, actor, status=422, form=form)
    messages.success(request, _("Suggestions turned on. Traces already assigned keep their previous setting."))
    return redirect("dashboard:suggestions", actor.project.slug)


@post_view(Action.LICENSE)
def stop_suggestions(request: HttpRequest, actor: Membership) -> HttpResponse:
    plan = suggestions.find_plan(actor.project.pk)
    if plan is not None:
        suggestions.stop_suggestions(plan=plan, because=SuggestionEnd.LEAD, by=actor.user, now=timezone.now())
    messages.success(request, _("Suggestions turned off."))
    return redirect("dashboard:suggestions", actor.project.slug)


def _read_plan(request: HttpRequest) -> int | None:
    """Return the chosen plan. An id that cannot be read finds no plan."""
    chosen = request.GET.get("plan")
    return None if chosen is None else integers.parse_integer(chosen) or 0


def _render(
    request: HttpRequest, actor: Membership, *, status: int = 200, form: SuggestionsForm | None = None
) -> HttpResponse:
    plan = suggestions.find_plan(actor.project.pk, _read_plan(request))
    if plan is None and "plan" in request.GET:
        raise Http404
    effects = suggestion_effects.measure_effects(plan) if plan else None
    initial = {name: getattr(plan, name) for name in ("machine", "reveal_share", "suggest_share")} if plan else None
    return project_page(
        request,
        actor,
        "dashboard/suggestions.html",
        here="judges",
        status=status,
        plan=plan,
        plans=suggestion_effects.list_plans(actor.project.pk),
        effects=effects,
        arms=[(arm, list(_list_rows(arm, effects))) for arm in effects.arms] if effects else [],
        form=form or SuggestionsForm(actor.project, initial=initial),
        has_machines=bool(consensus_report.list_machines(actor.project)),
        may_change=roles.membership_may(actor, Action.LICENSE),
        effect_size=exposure_effects.EFFECT,
        time_change=exposure_effects.TIME_CHANGE,
    )


def _list_rows(arm: ArmEffects, effects: PlanEffects) -> Iterator[EffectRow]:
    labels: dict[str, tuple[str, ShareEffect]] = {
        "follow": (_("Gives the machine’s answer where it is wrong, on hidden gold"), arm.follow),
        "gold": (_("Correct on hidden gold"), arm.gold),
        "errors": (_("Names an error, on all traces"), arm.errors),
    }
    for name, (label, effect) in labels.items():
        interval = effect.interval
        yield EffectRow(
            name=name,
            label=label,
            exposed=ValueWithInterval(effect.exposed, None, None).shown,
            n=effect.n,
            blind=ValueWithInterval(effect.blind, None, None).shown,
            n_blind=effect.blind_n,
            effect=ValueWithInterval(effect.difference, interval.low, interval.high) if interval else None,
            power=effect.power,
            n_needed=effect.n_needed,
        )
    time = arm.time
    yield EffectRow(
        name="time",
        label=_("Seconds per trace, geometric mean; the effect is a ratio"),
        exposed=f"{time.exposed:.1f}" if time else "–",
        n=time.n if time else arm.n,
        blind=f"{time.blind:.1f}" if time else "–",
        n_blind=time.blind_n if time else effects.n_blind,
        effect=ValueWithInterval(time.ratio, time.interval.low, time.interval.high) if time else None,
        power=time.power if time else None,
    )
