"""One trace: its steps, consensus and state, its assignments, its history. A fixed number of queries.

Leads mark it as gold, withdraw it, and reclaim its assignments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from accounts.models import User
from dashboard import event_labels, pair_access, progress_charts, rater_names, rater_opinions, trace_status, trace_steps
from dashboard.access import membership_or_404, post_view, safe_view
from dashboard.event_labels import TraceEvent
from dashboard.render import project_page
from dashboard.views.gold import MakeGoldForm, get_consensus_answer
from dashboard.views.messages import load_questions
from events.models import Event
from labeling import gold_sets, queue, step_numbers
from labeling.models import Assignment, Consensus, Gold, QueueEntry, Settlement, StoredImage, Trace
from labeling.models.assignment import OPEN_STATES, AssignmentOrigin, AssignmentPurpose
from labeling.models.rater import RaterKind
from labeling.models.trace import TraceKind
from labeling.projects import trace_questions
from labeling.projects.trace_questions import NamedAnswer
from labeling.quality import settlements, submitted_reports
from labeling.quality.adjudication import CannotDecide, reopen_trace, send_back_trace, withdraw_traces
from labeling.quality.gold import InvalidGold
from labeling.step_numbers import StepNumbers
from labeling.traces import changed_steps
from people import roles
from people.models import Membership
from people.roles import Action
from prm import explanation

MAX_EVENTS = 200  # shown on one page
IMAGE_SECONDS = 365 * 24 * 3600  # an image never changes


class WithdrawTraceForm(forms.Form):
    reason = forms.CharField(max_length=200)


@dataclass(frozen=True)
class TraceReading:
    """One assignment, with the first error of its submission."""

    assignment: Assignment
    name: str
    report: submitted_reports.RevisionReport | None
    error: int | None  # number of the step with the first error
    n_rated: int  # steps rated so far
    answers: Sequence[NamedAnswer] = ()  # on the whole trace

    @property
    def is_label(self) -> bool:
        """Whether it is submitted work of a person."""
        is_work = self.assignment.purpose == AssignmentPurpose.WORK and self.assignment.submitted_revision > 0
        return is_work and self.assignment.rater.kind != RaterKind.MACHINE

    @property
    def is_imported(self) -> bool:
        return self.assignment.origin == AssignmentOrigin.IMPORTED

    @property
    def state(self) -> str:
        return _("imported") if self.is_imported else self.assignment.get_state_display()

    @property
    def is_open(self) -> bool:
        return self.assignment.state in OPEN_STATES


@dataclass(frozen=True)
class TraceStatus:
    """The state of a trace, and the reason."""

    consensus: Consensus | None
    entries: Sequence[QueueEntry]
    gold: Sequence[tuple[Gold, str]]  # with its accepted first errors in words
    why: str
    is_resolved: bool
    is_submitted: bool
    error: int | None  # number of the step with the first error, by consensus
    assisted: float | None  # probability of that error when machines and raters who saw scores also count


@safe_view(Action.READ)
def show_trace(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    return _render_trace(request, actor, _load_trace(actor, trace))


@post_view(Action.MAKE_GOLD)
def make_trace_gold(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    row = _load_trace(actor, trace)
    form = MakeGoldForm(request.POST, trace=row)
    if not form.is_valid():
        return _render_trace(request, actor, row, status=422, gold_form=form)
    try:
        gold_sets.make_served_gold(trace=row, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except InvalidGold as error:
        return _render_trace(request, actor, row, status=422, problem=str(error))
    messages.success(request, _("Marked as gold."))
    return redirect("dashboard:trace", actor.project.slug, row.pk)


@post_view(Action.BRING_IN)
def withdraw_trace(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    row = _load_trace(actor, trace)
    form = WithdrawTraceForm(request.POST)
    if not form.is_valid():
        return _render_trace(request, actor, row, status=422, problem=_("Enter a reason for withdrawing the trace."))
    now, reason = timezone.now(), form.cleaned_data["reason"]
    withdraw_traces(project=actor.project, trace_ids=[row.pk], reason=reason, by=actor.user, now=now)
    messages.success(
        request, _("Withdrawn. This trace will no longer be assigned; annotators who have it open can still submit it.")
    )
    return redirect("dashboard:trace", actor.project.slug, row.pk)


@post_view(Action.ADJUDICATE)
def reopen_settled_trace(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    """Discard the consensus. The trace then waits in adjudication."""
    return _change_settlement(
        request, actor, trace, reopen_trace, _("Reopened. The trace is now waiting for adjudication.")
    )


@post_view(Action.ADJUDICATE)
def request_trace_label(request: HttpRequest, actor: Membership, trace: int) -> HttpResponse:
    return _change_settlement(request, actor, trace, send_back_trace, _("One more annotator will label this trace."))


def _change_settlement(
    request: HttpRequest, actor: Membership, trace: int, change: Callable[..., None], message: str
) -> HttpResponse:
    row = _load_trace(actor, trace)
    try:
        change(trace_id=row.pk, by=actor.user, now=timezone.now())
    except CannotDecide as error:
        return _render_trace(request, actor, row, status=422, problem=str(error))
    messages.success(request, message)
    return redirect("dashboard:trace", actor.project.slug, row.pk)


@post_view(Action.PAUSE)
def reclaim_from_annotator(request: HttpRequest, actor: Membership, assignment: int) -> HttpResponse:
    """Reclaim a trace from its annotator, so that the queue can assign it again."""
    row = get_object_or_404(Assignment, project=actor.project, pk=assignment)
    if queue.reclaim_assignment(assignment_id=row.pk, now=timezone.now(), by=actor.user):
        messages.success(
            request,
            _(
                "Reclaimed. The trace is back in the queue. Its ratings are kept, and the annotator can "
                "still submit it."
            ),
        )
    else:
        messages.warning(request, _("This assignment is no longer open. Nothing was changed."))
    return redirect("dashboard:trace", actor.project.slug, row.trace_id)


@require_safe
@cache_control(private=True, max_age=IMAGE_SECONDS, immutable=True)
def show_trace_image(request: HttpRequest, slug: str, image: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.READ)
    row = get_object_or_404(StoredImage, project=actor.project, digest=image)
    if not pair_access.may_see_image(actor, row.pk):
        raise Http404
    return HttpResponse(row.data, content_type="image/png")


def _load_trace(actor: Membership, trace: int) -> Trace:
    rows = Trace.objects.select_related("problem", "source", "provenance", "pairing")
    row = get_object_or_404(rows, project=actor.project, pk=trace)
    pair_access.reserve_half_or_403(actor, row)
    return row


def _render_trace(
    request: HttpRequest, actor: Membership, trace: Trace, *, status: int = 200, **context: Any
) -> HttpResponse:
    numbers = step_numbers.load_step_numbers(trace_ids=[trace.pk])
    readings = _load_trace_readings(trace, actor, numbers)
    trace_state = _load_status(trace, numbers, sum(reading.is_label for reading in readings))
    context.setdefault("gold_form", MakeGoldForm(trace=trace, initial=get_consensus_answer(trace_state.consensus)))
    if roles.membership_may(actor, Action.TRAIN):  # annotators must not see scores before they rate
        gold = [row for row, _accepted in trace_state.gold]
        context["why"] = explanation.explain_selection(trace, gold=gold, entries=trace_state.entries)
        context["provers"] = progress_charts.load_prover_charts(trace, numbers)
    history = _load_history(trace, readings, actor, numbers)
    assignments = [reading.assignment for reading in readings]
    if roles.membership_may(actor, Action.BRING_IN) and changed_steps.has_changeable_steps(
        trace, assignments=assignments, is_gold=bool(trace_state.gold)
    ):
        context["may_change_steps"] = True
        is_made = any(each.event.what == changed_steps.MADE for each in history)
        context["replaced"] = changed_steps.find_replaced_trace(trace) if is_made else None
    return project_page(
        request,
        actor,
        "dashboard/trace.html",
        here="traces",
        status=status,
        tables=[each.chart.table for each in context.get("provers", ())],
        trace=trace,
        trace_state=trace_state,
        steps=trace_steps.load_steps(trace, trace_state.consensus),
        readings=readings,
        majority=rater_opinions.describe_majority(trace, readings),
        questions=load_questions(trace, actor),
        history=history,
        may_make_gold=roles.membership_may(actor, Action.MAKE_GOLD),
        may_withdraw=roles.membership_may(actor, Action.BRING_IN) and trace.withdrawn_at is None,
        may_reclaim=roles.membership_may(actor, Action.PAUSE),
        may_adjudicate=roles.membership_may(actor, Action.ADJUDICATE),
        **context,
    )


def _load_trace_readings(trace: Trace, actor: Membership, numbers: StepNumbers) -> list[TraceReading]:
    is_rated = Q(turns__revision=F("revision"), turns__judgments__rating__isnull=False)
    rows: QuerySet[Assignment] = Assignment.objects.filter(trace=trace).select_related("rater__user", "lane")
    assignments = list(rows.annotate(n_rated=Count("turns", filter=is_rated, distinct=True)).order_by("pk"))
    latest = {row.pk: row.submitted_revision for row in assignments if row.submitted_revision}
    reports = {report.assignment_id: report for report in submitted_reports.load_revision_reports([*latest.items()])}
    answers = trace_questions.load_named_answers(actor.project, latest)
    return [
        TraceReading(
            assignment=row,
            name=rater_names.get_display_name(row.rater, actor),
            report=(report := reports.get(row.pk)),
            error=trace_steps.find_error_number(report, trace.pk, numbers),
            n_rated=row.n_rated,
            answers=answers.get(row.pk, ()),
        )
        for row in assignments
    ]


def _load_status(trace: Trace, numbers: StepNumbers, n_labels: int) -> TraceStatus:
    entries = list(QueueEntry.objects.filter(trace=trace).select_related("lane", "draw").order_by("pk"))
    settlement = Settlement.objects.filter(trace=trace).first()
    revision = settlement.consensus_revision if settlement else 0
    consensus = Consensus.objects.filter(trace=trace, revision=revision).select_related("fit").first()
    gold = Gold.objects.active().filter(trace=trace).select_related("made_by").order_by("pk")
    error = consensus.first_error if consensus else None
    places = [trace_status.QueuePlace(entry.lane.arm, entry.slots_left) for entry in entries]
    return TraceStatus(
        consensus=consensus,
        entries=entries,
        gold=[(row, trace_steps.describe_accepted_errors(row, numbers)) for row in gold],
        why=trace_status.explain_trace_status(trace, settlement, places, n_labels=n_labels),
        is_resolved=settlement is not None and settlement.state in settlements.RESOLVED_STATES,
        is_submitted=settlement is not None and trace.kind != TraceKind.LIVE,
        error=None if error is None else numbers.at(trace.pk, error),
        assisted=_read_assisted_probability(consensus),
    )


def _read_assisted_probability(consensus: Consensus | None) -> float | None:
    if consensus is None or consensus.assisted_posterior is None:
        return None
    return float(consensus.assisted_posterior[-1 if consensus.first_error is None else consensus.first_error])


def _load_history(
    trace: Trace, readings: Sequence[TraceReading], actor: Membership, numbers: StepNumbers
) -> list[TraceEvent]:
    """Load the logged events of a trace and of its assignments, newest first."""
    subjects = [f"trace:{trace.pk}", *(f"assignment:{reading.assignment.pk}" for reading in readings)]
    events = list(Event.objects.filter(subject__in=subjects).order_by("-pk")[:MAX_EVENTS])
    users = User.objects.filter(pk__in={event.by for event in events if event.by is not None})
    names = {user.pk: str(user) for user in users}
    if not rater_names.can_see_names(actor):
        names.update({reading.assignment.rater.user_id or 0: reading.name for reading in readings})
    described = [
        event_labels.describe_event(event, names.get(event.by or 0, ""), partial(numbers.at, trace.pk))
        for event in events
    ]
    return [*described, event_labels.describe_import(trace, sum(reading.is_imported for reading in readings))]
