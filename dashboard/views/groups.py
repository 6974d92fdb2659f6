"""Groups of annotators with a skill, who can be assigned traces, and rules that put new traces first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from dashboard import rater_names
from dashboard.access import post_view, safe_view
from dashboard.render import project_page
from labeling import queue
from labeling.models import QueueEntry, Rater, RaterGroup, SteeringRule
from labeling.traces import steering_rules
from people.models import Membership
from people.roles import Action


class GroupForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=80)
    raters = forms.ModelMultipleChoiceField(
        label=gettext_lazy("Annotators"),
        queryset=Rater.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, actor: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["raters"]
        field.queryset = _list_raters(actor)  # type: ignore[attr-defined]  # it is a ModelMultipleChoiceField
        field.label_from_instance = lambda rater: rater_names.get_display_name(rater, actor)  # type: ignore[attr-defined]  # as above


def _list_raters(actor: Membership) -> Any:
    return Rater.objects.active().members().filter(project=actor.project).select_related("user").order_by("pk")


class RuleForm(forms.Form):
    domain = forms.CharField(label=gettext_lazy("Domain"), max_length=100, required=False)
    source_name = forms.CharField(label=gettext_lazy("File name contains"), max_length=100, required=False)
    percent = forms.FloatField(label=gettext_lazy("Share, %"), min_value=0.1, max_value=100, initial=100)
    group = forms.ModelChoiceField(
        label=gettext_lazy("Move to front"),
        queryset=RaterGroup.objects.none(),
        required=False,
        empty_label=gettext_lazy("for everyone"),
    )
    applies_to_existing = forms.BooleanField(
        label=gettext_lazy("Also apply to existing traces that are not labeled yet"), required=False
    )

    def __init__(self, *args: Any, actor: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups = RaterGroup.objects.named().filter(project=actor.project).order_by("name")
        self.fields["group"].queryset = groups  # type: ignore[attr-defined]  # it is a ModelChoiceField


@dataclass(frozen=True)
class WaitingGroup:
    """A group or one person, with the traces that wait for them. Only groups have a form."""

    pk: int
    name: str
    n_waiting: int
    form: GroupForm | None


@safe_view(Action.PAUSE)
def show_groups(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_groups(request, actor)


@post_view(Action.PAUSE)
def save_group(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = GroupForm(request.POST, actor=actor)
    if not form.is_valid():
        return _render_groups(request, actor, status=422, form=form)
    queue.save_group(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(request, _("Group saved."))
    return redirect("dashboard:groups", actor.project.slug)


@post_view(Action.PAUSE)
def delete_group(request: HttpRequest, actor: Membership, group: int) -> HttpResponse:
    row = get_object_or_404(RaterGroup.objects.named(), project=actor.project, pk=group)
    n = steering_rules.delete_group(group=row, by=actor.user, now=timezone.now())
    done = ngettext(
        "Group deleted. %(n)d trace returned to its usual place in the queue.",
        "Group deleted. %(n)d traces returned to their usual places in the queue.",
        n,
    )
    messages.success(request, done % {"n": n})
    return redirect("dashboard:groups", actor.project.slug)


@post_view(Action.PAUSE)
def make_steering_rule(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = RuleForm(request.POST, actor=actor)
    if not form.is_valid():
        return _render_groups(request, actor, status=422, rule_form=form)
    options = {**form.cleaned_data}
    share = options.pop("percent") / 100
    n = steering_rules.make_rule(project=actor.project, share=share, by=actor.user, now=timezone.now(), **options)
    done = ngettext(
        "Rule created. %(n)d trace was moved to the front of the queue.",
        "Rule created. %(n)d traces were moved to the front of the queue.",
        n,
    )
    messages.success(request, done % {"n": n})
    return redirect("dashboard:groups", actor.project.slug)


@post_view(Action.PAUSE)
def stop_steering_rule(request: HttpRequest, actor: Membership, rule: int) -> HttpResponse:
    row = get_object_or_404(SteeringRule, project=actor.project, pk=rule)
    steering_rules.stop_rule(rule=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Rule stopped. Traces that it moved to the front of the queue stay there."))
    return redirect("dashboard:groups", actor.project.slug)


def _render_groups(
    request: HttpRequest,
    actor: Membership,
    *,
    status: int = 200,
    form: GroupForm | None = None,
    rule_form: RuleForm | None = None,
) -> HttpResponse:
    rules = SteeringRule.objects.filter(project=actor.project, stopped_at=None).select_related("group")
    return project_page(
        request,
        actor,
        "dashboard/groups.html",
        here="groups",
        status=status,
        rater_groups=_list_groups(actor),
        form=form or GroupForm(actor=actor),
        rules=[(rule, f"{rule.share * 100:g} %") for rule in rules.order_by("pk")],
        rule_form=rule_form or RuleForm(actor=actor, auto_id="id_rule_%s"),
    )


def _list_groups(actor: Membership) -> Sequence[WaitingGroup]:
    groups = (
        RaterGroup.objects.filter(project=actor.project, deleted_at=None)
        .select_related("person__user")
        .prefetch_related("raters")
    )
    waiting = dict(
        QueueEntry.objects.open()
        .filter(lane__project=actor.project, lane__group__isnull=False)
        .values_list("lane__group")
        .annotate(n=Count("trace", distinct=True, filter=Q(trace__withdrawn_at=None)))
    )
    return [
        WaitingGroup(
            group.pk,
            rater_names.get_display_name(group.person, actor) if group.person else group.name,
            waiting.get(group.pk, 0),
            None if group.person else _fill_form(group, actor),
        )
        for group in groups.order_by("name", "pk")
        if group.person is None or waiting.get(group.pk)
    ]


def _fill_form(group: RaterGroup, actor: Membership) -> GroupForm:
    initial = {"name": group.name, "raters": [rater.pk for rater in group.raters.all()]}
    return GroupForm(initial=initial, actor=actor, auto_id=f"id_group{group.pk}_%s")
