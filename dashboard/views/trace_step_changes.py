"""Split and merge the steps of one trace by hand, and undo it. A trace that someone has opened is not changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.access import form_view, post_view
from dashboard.render import project_page
from formats.messages import MessagePart, StepPlace, find_message_parts
from formats.records import StepRecord
from formats.step_changes import StepChange, choose_mark, find_cuts, is_changeable, may_merge
from labeling.models import Trace
from labeling.traces.changed_steps import (
    CannotChangeSteps,
    change_trace_steps,
    explain_fixed_steps,
    load_step_records,
    restore_steps,
)
from people.models import Membership
from people.roles import Action


@dataclass(frozen=True)
class EditableStep:
    """A step of the form, with what the person has entered so far."""

    position: int
    number: int | None  # as annotators see it; context has none
    kind: str
    text: str
    entered: str
    is_changeable: bool
    may_merge: bool
    is_merged: bool
    part: MessagePart | None

    @property
    def rows(self) -> int:
        return min(max(self.text.count("\n") + len(self.text) // 90 + 1, 2), 30)


@form_view(Action.BRING_IN)
def edit_trace_steps(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    """Show the steps as texts in which marks can be put; a POST request makes the new trace."""
    row = _load_trace(actor, trace)
    fixed = explain_fixed_steps(row)
    records = [] if fixed else load_step_records(row)
    mark = choose_mark(option.text for step in records for option in step.options)
    if request.method != "POST" or fixed:
        return _render_form(request, actor, row, records, mark, problem=fixed, status=422 if request.POST else 200)
    try:
        changes = _read_changes(request.POST, records, mark)
        new = change_trace_steps(trace=row, changes=changes, by=actor.user, now=timezone.now())
    except CannotChangeSteps as error:
        return _render_form(request, actor, row, records, mark, problem=str(error), status=422)
    messages.success(request, _("Saved as a new trace. Trace %(n)d was withdrawn.") % {"n": row.pk})
    return redirect("dashboard:trace", actor.project.slug, new.pk)


@post_view(Action.BRING_IN)
def restore_trace_steps(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    """Withdraw a trace that was made by hand, and assign the trace that it replaced again."""
    row = _load_trace(actor, trace)
    try:
        old = restore_steps(trace=row, by=actor.user, now=timezone.now())
    except CannotChangeSteps as error:
        messages.warning(request, str(error))
        return redirect("dashboard:trace", actor.project.slug, row.pk)
    messages.success(request, _("Restored. Trace %(n)d was withdrawn.") % {"n": row.pk})
    return redirect("dashboard:trace", actor.project.slug, old.pk)


def _load_trace(actor: Membership, trace: int) -> Trace:
    rows = Trace.objects.select_related("project", "problem", "source", "provenance")
    return get_object_or_404(rows, project=actor.project, pk=trace)


def _read_changes(form: QueryDict, records: Sequence[StepRecord], mark: str) -> list[StepChange]:
    """Read the marks and boxes of the form. Raises `CannotChangeSteps` if a text was edited."""
    changes: list[StepChange] = []
    number = 0
    for position, step in enumerate(records):
        number += step.is_rateable
        text = step.options[0].text if step.options else ""
        marked = form.get(f"text-{position}")
        cuts = () if marked is None or not is_changeable(step) else find_cuts(text, marked, mark=mark)
        if cuts is None:
            message = _("The text of step %(n)d was changed. Add or remove only the mark %(mark)s, not the text.")
            raise CannotChangeSteps(message % {"n": number, "mark": mark}, "text_changed")
        changes.append(StepChange(position, cuts, f"merge-{position}" in form))
    return changes


def _render_form(
    request: HttpRequest,
    actor: Membership,
    trace: Trace,
    records: Sequence[StepRecord],
    mark: str,
    *,
    problem: str,
    status: int,
) -> HttpResponse:
    return project_page(
        request,
        actor,
        "dashboard/trace_step_changes.html",
        here="traces",
        status=status,
        trace=trace,
        steps=_build_editable_steps(records, request.POST),
        mark=mark,
        problem=problem,
    )


def _build_editable_steps(records: Sequence[StepRecord], form: QueryDict) -> list[EditableStep]:
    parts = find_message_parts(StepPlace(step.source_position, step.is_rateable) for step in records)
    steps: list[EditableStep] = []
    number = 0
    for position, (step, part) in enumerate(zip(records, parts, strict=True)):
        number += step.is_rateable
        text = step.options[0].text if step.options else ""
        steps.append(
            EditableStep(
                position=position,
                number=number if step.is_rateable else None,
                kind=step.kind,
                text=text,
                entered=form.get(f"text-{position}", text),
                is_changeable=is_changeable(step),
                may_merge=position > 0 and may_merge(records[position - 1], step),
                is_merged=f"merge-{position}" in form,
                part=part,
            )
        )
    return steps
