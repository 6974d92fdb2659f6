"""Split and merge the steps of one trace by hand, and undo it. A trace that someone has opened is not changed."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.access import form_view, post_view
from dashboard.render import project_page
from dashboard.step_editor import build_editable_steps, choose_step_mark, read_step_changes
from formats.records import StepRecord
from labeling.models import Trace
from labeling.traces.changed_steps import change_trace_steps, explain_fixed_steps, load_step_records, restore_steps
from labeling.traces.record_changes import CannotChangeSteps
from people.models import Membership
from people.roles import Action


@form_view(Action.BRING_IN)
def edit_trace_steps(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    """Show the steps as texts in which marks can be put; a POST request makes the new trace."""
    row = _load_trace(actor, trace)
    fixed = explain_fixed_steps(row)
    records = [] if fixed else load_step_records(row)
    mark = choose_step_mark(records)
    if request.method != "POST" or fixed:
        return _render_form(request, actor, row, records, mark, problem=fixed, status=422 if request.POST else 200)
    try:
        changes = read_step_changes(request.POST.dict(), records, mark)
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
        steps=build_editable_steps(records, request.POST.dict()),
        mark=mark,
        problem=problem,
    )
