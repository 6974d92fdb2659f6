"""The annotators of a project, and the page of one annotator, on which leads pause, resume and retrain them."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard import paging, recent_activity, render, statistics
from dashboard.access import post_view, safe_view
from dashboard.annotator_summaries import (
    AnnotatorSummary,
    GoldThresholdStatus,
    describe_gold_threshold,
    load_summaries,
    select_listed,
)
from dashboard.figures import DataTable, TableColumn, number_columns
from dashboard.views.messages import find_unseen_answers
from dashboard.views.set_aside import list_set_asides
from labeling import onboarding, raters, step_numbers
from labeling.models import Assignment, FirstErrorReport, GoldAnswer, Rater
from labeling.models.assignment import FinishReason
from labeling.models.consensus import SettlementState
from labeling.quality import consensus
from labeling.quality.project_stats import await_stats, load_project_stats
from labeling.quality.submitted_reports import CENSORING_REASONS
from labeling.step_numbers import StepNumbers
from people.models import Membership
from people.roles import Action

PAGE_SIZE = 25  # submissions of one annotator
_ASSIGNMENT_COLUMNS = ("trace", "submitted_at", "finish_reason", "set_aside")  # that the list shows
_TRACE_COLUMNS = ("trace__problem__text", "trace__settlement__state")


class PauseAnnotatorForm(forms.Form):
    reason = forms.CharField(max_length=300)


@dataclass(frozen=True)
class AnnotatorsPage:
    people: Sequence[AnnotatorSummary]
    n: int  # all annotators of the project; `people` has at most MAX_LISTED
    threshold_status: GoldThresholdStatus
    currency: str
    now: dt.datetime
    choice: str = ""
    q: str = ""

    @property
    def paused(self) -> list[AnnotatorSummary]:
        return [person for person in self.people if person.is_paused]

    @property
    def choices(self) -> list[tuple[str, str, int]]:
        """Return the key, label and size of each filter."""
        labels = {
            "": _("All"),
            "active": _("Active this week"),
            "flagged": _("Flagged"),
            "paused": _("Paused"),
            "unread": _("Guideline unread"),
        }
        choices = [
            (key, label, sum(_matches_choice(person, key, self.now) for person in self.people))
            for key, label in labels.items()
        ]
        return [choice for choice in choices if choice[0] != "unread" or choice[2] or self.choice == "unread"]

    @property
    def listed(self) -> list[AnnotatorSummary]:
        words = self.q.casefold()
        return [
            person
            for person in self.people
            if _matches_choice(person, self.choice, self.now) and words in person.name.casefold()
        ]

    def build_tables(self) -> list[DataTable]:
        """Build the tables to download; the page itself does not show them."""
        activity = [(person.name, person.activity) for person in self.people if person.activity]
        return [_build_table(self.people, self.currency), recent_activity.build_activity_table(activity)]


def _matches_choice(person: AnnotatorSummary, choice: str, now: dt.datetime) -> bool:
    if choice == "active":
        return person.seen_at is not None and now - person.seen_at < dt.timedelta(days=7)
    if choice == "flagged":
        return bool(person.flags)
    if choice == "unread":
        return not person.has_read_guideline
    return choice != "paused" or person.is_paused


def load_annotators(actor: Membership, now: dt.datetime, *, choice: str = "", q: str = "") -> AnnotatorsPage:
    project = actor.project
    stats = load_project_stats(project_id=project.pk)
    await_stats(stats=stats, now=now)
    figures = stats.content["raters"] if stats else {}
    keys, n = select_listed(project, figures)
    people = load_summaries(actor, Rater.objects.filter(pk__in=keys), figures, now)
    people.sort(key=lambda person: (-person.n_steps, person.name))
    monitoring = stats.content["watching"] if stats else {}
    return AnnotatorsPage(
        people=people,
        n=n,
        threshold_status=describe_gold_threshold(project.gold_bar, monitoring),
        currency=project.currency,
        now=now,
        choice=choice,
        q=q.strip(),
    )


def load_annotator(actor: Membership, rater: int, now: dt.datetime) -> AnnotatorSummary | None:
    stats = load_project_stats(project_id=actor.project_id)
    await_stats(stats=stats, now=now)
    members = Rater.objects.members().filter(project=actor.project, pk=rater)
    people = load_summaries(actor, members, stats.content["raters"] if stats else {}, now, only=rater)
    return people[0] if people else None


def _build_table(people: Sequence[AnnotatorSummary], currency: str) -> DataTable:
    shares = (_("Gold accuracy"), _("Missed errors"), _("False alarms"), _("Same as others"))
    columns = (
        TableColumn(_("Name")),
        TableColumn(_("Pseudonym")),
        *number_columns(_("Traces"), _("Steps"), _("Seconds per step")),
        *(column for name in shares for column in [*statistics.share_columns(name), *number_columns(_("of"))]),
        TableColumn(_("Flags")),
        *number_columns(_("Pay, %(currency)s") % {"currency": currency}),
    )
    rows = [
        (
            *(person.name, person.rater.labeler, person.n_traces, person.n_steps),
            round(person.seconds_per_step, 2) if person.seconds_per_step else None,
            *(
                cell
                for share in (person.gold, person.missed, person.blamed, person.others)
                for cell in (share.value, share.low, share.high, share.n)
            ),
            ", ".join(flag.name for flag in person.flags),
            None if person.cost is None else round(person.cost, 2),
        )
        for person in people
    ]
    return DataTable("annotators", _("annotators"), columns, rows)


@dataclass(frozen=True)
class SubmittedTrace:
    assignment: Assignment
    result: str
    known: str  # the gold verdict, the consensus, or the state of the trace
    differs: bool


def _load_submitted_traces(actor: Membership, rows: Sequence[Assignment]) -> list[SubmittedTrace]:
    keys, traces = [row.pk for row in rows], {row.trace_id for row in rows}
    reports = FirstErrorReport.objects.in_bulk(keys)
    answers = {answer.assignment_id: answer for answer in GoldAnswer.objects.filter(assignment__in=keys)}
    revisions = consensus.current_revisions(project_id=actor.project_id).filter(trace__in=traces)
    settled = dict(revisions.values_list("trace", "first_error"))
    numbers = step_numbers.load_step_numbers(trace_ids=traces)
    return [_build_submitted_trace(row, reports.get(row.pk), answers.get(row.pk), settled, numbers) for row in rows]


def _build_submitted_trace(
    row: Assignment,
    report: FirstErrorReport | None,
    answer: GoldAnswer | None,
    settled: dict[int, int | None],
    numbers: StepNumbers,
) -> SubmittedTrace:
    position = answer.first_error if answer else report.first_error if report else None
    if answer is not None:
        differs = answer.verdict != "right"
        values = {"use": answer.get_use_display(), "verdict": answer.get_verdict_display()}
        known = _("gold, %(use)s: %(verdict)s") % values
    elif row.trace_id in settled:
        differs = report is not None and not report.is_censored and position != settled[row.trace_id]
        known = _("settled: %(result)s") % {"result": _describe_result(row.trace_id, settled[row.trace_id], numbers)}
    else:
        settlement = getattr(row.trace, "settlement", None)
        differs, known = False, str(SettlementState(settlement.state).label) if settlement else "–"
    if row.finish_reason in CENSORING_REASONS:
        return SubmittedTrace(row, str(FinishReason(row.finish_reason).label), known, differs)
    return SubmittedTrace(row, _describe_result(row.trace_id, position, numbers), known, differs)


def _describe_result(trace_id: int, position: int | None, numbers: StepNumbers) -> str:
    if position is None:
        return _("no error")
    return _("first error at step %(n)d") % {"n": numbers.at(trace_id, position)}


@safe_view(Action.READ_QUALITY)
def show_annotators(request: HttpRequest, actor: Membership) -> HttpResponse:
    filters = {name: request.GET.get(name, "")[:100] for name in ("choice", "q")}
    annotators = load_annotators(actor, timezone.now(), **filters)
    return render.project_page(
        request,
        actor,
        "dashboard/annotators.html",
        here="annotators",
        tables=annotators.build_tables() if "csv" in request.GET else [],
        annotators=annotators,
        answered=find_unseen_answers(actor.project),
    )


@safe_view(Action.READ_QUALITY)
def show_annotator(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    person = load_annotator(actor, rater, timezone.now())
    if person is None:
        raise Http404
    days = recent_activity.draw_activity_chart(person.activity) if person.activity else None
    submitted = Assignment.objects.submitted().filter(rater=rater).select_related("trace__problem", "trace__settlement")
    submitted = submitted.only(*_ASSIGNMENT_COLUMNS, *_TRACE_COLUMNS)
    rows = paging.paginate(submitted, request.GET, size=PAGE_SIZE, is_scattered=True)
    set_asides = list_set_asides(person.rater)
    return render.project_page(
        request,
        actor,
        "dashboard/annotator.html",
        here="annotators",
        tables=[days.table] if days else [],
        person=person,
        days=days,
        rows=rows,
        submissions=_load_submitted_traces(actor, rows.rows),
        set_asides=set_asides,
        has_labels_aside=any(each.n_labels for each in set_asides),
    )


@post_view(Action.PAUSE)
def pause_annotator(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    row, form = _get_rater(actor, rater), PauseAnnotatorForm(request.POST)
    if form.is_valid():
        raters.pause_rater(rater=row, by=actor.user, now=timezone.now(), **form.cleaned_data)
        messages.success(request, _("Paused. Open traces can still be finished. The annotator sees your reason."))
    else:
        messages.warning(request, _("Not paused: enter a reason for the annotator."))
    return redirect("dashboard:annotators", actor.project.slug)


@post_view(Action.PAUSE)
def resume_annotator(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    raters.resume_rater(rater=_get_rater(actor, rater), by=actor.user, now=timezone.now())
    messages.success(request, _("Resumed. Quality monitoring starts over."))
    return redirect("dashboard:annotators", actor.project.slug)


@post_view(Action.PAUSE)
def retrain_annotator(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    onboarding.require_retraining(rater_id=_get_rater(actor, rater).pk, by=actor.user, now=timezone.now())
    messages.success(request, _("Retraining required. The annotator must complete training before their next trace."))
    return redirect("dashboard:annotators", actor.project.slug)


def _get_rater(actor: Membership, rater: int) -> Rater:
    return get_object_or_404(Rater.objects.select_related("project"), project=actor.project, pk=rater)
