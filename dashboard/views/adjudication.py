"""Adjudication: a reviewer decides where annotators disagree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard import pair_access, rater_names, render, trace_steps
from dashboard.access import post_view, safe_view
from dashboard.rater_opinions import RaterOpinions, StepOpinion, describe_majority, load_rater_opinions
from dashboard.trace_steps import StepWithTexts
from labeling.models import Gold, Settlement, Trace
from labeling.projects.guidelines import rendering
from labeling.quality import settlements
from labeling.quality.adjudication import CannotDecide, decide_trace, send_back_trace
from labeling.quality.adjudicators import list_contested_for
from people import roles
from people.models import Membership
from people.roles import Action

MAX_QUEUED = 25  # traces in the list beside the case
NO_OPINION = StepOpinion(rating=None)


class SendBackForm(forms.Form):
    note = forms.CharField(label=gettext_lazy("Note"), required=False, max_length=2000, strip=True)
    seen = forms.DateTimeField(required=False)  # `Settlement.changed_at` when the page was rendered


class DecisionForm(SendBackForm):
    first_error = forms.ChoiceField(
        label=gettext_lazy("First error"),
        error_messages={"required": gettext_lazy("Choose the step with the first error, or “No error”.")},
    )
    becomes_gold = forms.BooleanField(label=gettext_lazy("Use as hidden gold"), required=False)

    def __init__(self, *args: Any, trace: Trace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        positions = trace.steps.filter(is_rateable=True).order_by("position").values_list("position", flat=True)
        self.fields["first_error"].choices = trace_steps.build_error_choices(positions)  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean_first_error(self) -> int | None:
        return trace_steps.parse_error_choice(self.cleaned_data["first_error"])

    def describe_decision(self) -> str:
        position: int | None = self.cleaned_data["first_error"]
        labels = dict(self.fields["first_error"].choices)  # type: ignore[attr-defined]  # it is a ChoiceField
        if position is None:
            return str(labels["none"])
        return _("first error at %(step)s") % {"step": labels[str(position)]}


@dataclass(frozen=True)
class AdjudicationStep:
    step: StepWithTexts
    opinions: Sequence[tuple[RaterOpinions, StepOpinion]]

    @property
    def is_split(self) -> bool:
        ratings = {opinion.rating for _rater, opinion in self.opinions}
        return len(ratings - {None}) > 1

    @property
    def is_open(self) -> bool:
        """Return whether the step needs a decision: ratings differ, or one is negative."""
        return self.is_split or any(opinion.rating == -1 for _rater, opinion in self.opinions)

    @property
    def comments(self) -> list[tuple[RaterOpinions, StepOpinion]]:
        return [(rater, opinion) for rater, opinion in self.opinions if opinion.has_words]


def load_case(settlement: Settlement, actor: Membership, *, with_names: bool) -> dict[str, Any]:
    """Load a contested trace with its submissions side by side, by a fixed number of queries."""
    trace = settlement.trace
    raters = load_rater_opinions(trace, actor, with_names=with_names)
    return {
        "trace": trace,
        "settlement": settlement,
        "raters": raters,
        "steps": [
            AdjudicationStep(step, [(rater, rater.by_step.get(step.position, NO_OPINION)) for rater in raters])
            for step in trace_steps.load_steps(trace)
        ],
        "has_gold": Gold.objects.active().filter(trace=trace).exists(),
        "majority": describe_majority(trace, raters),
    }


@safe_view(Action.ADJUDICATE)
def show_adjudication(request: HttpRequest, actor: Membership, trace: int | None = None) -> HttpResponse:
    """Show the given trace, or the first one for this person: their own, then the one that has waited longest."""
    if trace is None:
        queue = _load_queue(actor)
        first = next(iter(queue), None)
        if first is not None:
            pair_access.reserve_half_or_403(actor, first.trace)
        is_half = first is not None and hasattr(first.trace, "pairing")  # the queue no longer has the other half
        return _render_adjudication(request, actor, first, queue=None if is_half else queue)
    return _render_adjudication(request, actor, _get_settlement(actor, trace))


@post_view(Action.ADJUDICATE)
def decide_case(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    settlement = _get_settlement(actor, trace)
    form = DecisionForm(request.POST, trace=settlement.trace)
    if not form.is_valid():
        return _render_adjudication(request, actor, settlement, form=form, status=422)
    try:
        decide_trace(trace_id=trace, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except CannotDecide as error:
        return _render_refusal(request, actor, trace, error)
    messages.success(request, _("Decided: %(decision)s.") % {"decision": form.describe_decision()})
    return redirect("dashboard:adjudication", actor.project.slug)


@post_view(Action.ADJUDICATE)
def send_case_back(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    settlement = _get_settlement(actor, trace)
    form = SendBackForm(request.POST)
    if not form.is_valid():
        return _render_adjudication(request, actor, settlement, form=form, status=422)
    try:
        send_back_trace(trace_id=trace, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except CannotDecide as error:
        return _render_refusal(request, actor, trace, error)
    messages.success(request, _("Sent back. One more annotator will label this trace."))
    return redirect("dashboard:adjudication", actor.project.slug)


def _render_refusal(request: HttpRequest, actor: Membership, trace: int, error: CannotDecide) -> HttpResponse:
    """Show the current state of the trace: another reviewer may have decided it."""
    return _render_adjudication(request, actor, _get_settlement(actor, trace), problem=str(error), status=422)


def _get_settlement(actor: Membership, trace: int) -> Settlement:
    rows = Settlement.objects.filter(project=actor.project).select_related("trace__problem", "trace__pairing")
    settlement = get_object_or_404(rows, pk=trace)
    pair_access.reserve_half_or_403(actor, settlement.trace)
    return settlement


def _load_queue(actor: Membership) -> list[Settlement]:
    both = roles.may_read_both_halves(actor)
    rows = list_contested_for(project_id=actor.project_id, user=actor.user, reads_both_halves=both)
    return list(rows[: MAX_QUEUED + 1])


def _render_adjudication(
    request: HttpRequest,
    actor: Membership,
    settlement: Settlement | None,
    *,
    queue: Sequence[Settlement] | None = None,
    **context: Any,
) -> HttpResponse:
    """Render the page with `form`, `problem` and `status` in `context`."""
    may_see_names = rater_names.can_see_names(actor)
    with_names = request.GET.get("names") == "1" and may_see_names
    queue = _load_queue(actor) if queue is None else queue
    guideline = actor.project.guideline
    return render.project_page(
        request,
        actor,
        "dashboard/adjudication.html",
        here="adjudication",
        queue=[(each, getattr(each.trace, "adjudication_task", None)) for each in queue[:MAX_QUEUED]],
        has_more=len(queue) > MAX_QUEUED,
        case=load_case(settlement, actor, with_names=with_names) if settlement else None,
        guideline=rendering.to_html(guideline.body) if guideline else "",
        why=settlements.RESOLUTION_REASONS[settlement.reason] if settlement else "",
        with_names=with_names,
        may_see_names=may_see_names,
        **context,
    )
