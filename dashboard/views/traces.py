"""The list of traces, with its search, and the actions on many traces. One page examines a bounded number of rows,
however many the project has."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

import rawsql
from accounts.models import User
from dashboard import paging, rater_names
from dashboard.access import post_view, safe_view
from dashboard.figures import DataTable, TableColumn, number_columns
from dashboard.render import csv_response, project_page
from dashboard.trace_search import TraceSearchForm
from dashboard.trace_status import QueuePlace, explain_trace_status
from labeling import queue, trace_actions
from labeling.models import Project, Rater, RaterGroup, Trace
from labeling.models.consensus import Settlement
from labeling.models.gold import GoldUse
from labeling.quality import consensus
from labeling.quality.adjudication import withdraw_traces
from labeling.quality.adjudicators import assign_adjudication
from labeling.trace_actions import ActionOutcome
from labeling.traces import tags
from people import roles
from people.models import Membership
from people.roles import Action

MAX_SELECTED = 500  # for one action
EVERYONE = "all"
_TRACE_ROWS = rawsql.load_sql(__file__, "trace_rows.sql")


@dataclass(frozen=True)
class TraceRow:
    trace: Trace
    settlement: Settlement | None
    why: str
    is_gold: bool
    n_labels: int  # by people, made here or imported
    n_machine_labels: int
    tags: Sequence[str]


@safe_view(Action.READ)
def show_traces(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_traces(request, actor)


def _render_traces(
    request: HttpRequest, actor: Membership, *, status: int = 200, actions: "TraceActionForm | None" = None
) -> HttpResponse:
    """Show a page of traces. An invalid search shows all of them. The fields of the actions are shown for
    ?actions=open."""
    query = QueryDict(request.POST.get("query", "")) if request.method == "POST" else request.GET
    form = TraceSearchForm(query, actor=actor)
    everything = Trace.objects.filter(project=actor.project)
    matches, is_search = form.select(everything)
    # Every trace has the same project: it is set below instead of joined.
    matches = matches.select_related("problem", "settlement").defer("problem__reference_solution")
    page = paging.paginate(matches, query, among=everything if is_search else None)
    for trace in page.rows:
        trace.project = actor.project
    return project_page(
        request,
        actor,
        "dashboard/traces.html",
        here="traces",
        status=status,
        rows=page,
        traces=_build_rows(page.rows),
        is_search=is_search,
        form=form,
        query=query.urlencode(),
        actions=actions or (TraceActionForm(actor=actor) if "actions" in query else None),
        may={name for name, action in ACTIONS.items() if roles.membership_may(actor, action.allowed)},
    )


class TraceListFacts(NamedTuple):
    """What the list shows of a trace beside its own row. The columns of trace_rows.sql."""

    trace_id: int
    is_gold: bool
    n_by_people: int
    n_by_machines: int
    tags: Sequence[str]
    arms: Sequence[str] | None  # of its queue entries
    slots_left: Sequence[int] | None


def _build_rows(traces: Sequence[Trace]) -> list[TraceRow]:
    parameters = {"traces": [trace.pk for trace in traces]}
    listed = {row.trace_id: row for row in rawsql.fetch_named(TraceListFacts, _TRACE_ROWS, parameters)}
    return [
        TraceRow(
            trace,
            settlement,
            explain_trace_status(trace, settlement, _list_queue_places(row), n_labels=row.n_by_people),
            is_gold=row.is_gold,
            n_labels=row.n_by_people,
            n_machine_labels=row.n_by_machines,
            tags=row.tags,
        )
        for trace in traces
        for row, settlement in [(listed[trace.pk], getattr(trace, "settlement", None))]
    ]


def _list_queue_places(row: TraceListFacts) -> list[QueuePlace]:
    return [QueuePlace(*place) for place in zip(row.arms or (), row.slots_left or (), strict=True)]


class TraceActionForm(forms.Form):
    """The fields of all actions; each action requires its own."""

    tag = forms.CharField(label=gettext_lazy("Tag"), max_length=40, required=False)
    audience = forms.ChoiceField(label=gettext_lazy("Label next"), required=False)
    reviewer = forms.ChoiceField(label=gettext_lazy("Adjudication"), required=False)
    use = forms.ChoiceField(label=gettext_lazy("Gold"), choices=GoldUse.choices, required=False)
    reason = forms.CharField(label=gettext_lazy("Reason for withdrawing"), max_length=200, required=False)

    def __init__(self, *args: object, actor: Membership, **kwargs: object) -> None:
        kwargs.setdefault("auto_id", "id_action_%s")  # the search has a tag too
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed on
        project = actor.project
        groups = RaterGroup.objects.named().filter(project=project).order_by("name")
        raters = Rater.objects.active().members().filter(project=project).select_related("user").order_by("pk")
        people = sorted((rater_names.get_display_name(each, actor), each.pk) for each in raters[:MAX_SELECTED])
        audience = [(f"group:{group.pk}", group.name) for group in groups]
        audience += [(f"rater:{pk}", name) for name, pk in people]
        self.fields["audience"].choices = [(EVERYONE, _("for everyone")), *audience]  # type: ignore[attr-defined]  # a ChoiceField
        allowed = sorted(roles.roles_allowed_to(Action.ADJUDICATE))
        members = Membership.objects.active().filter(project=project, role__in=allowed).select_related("user")
        reviewers = [(str(each.user_id), str(each.user)) for each in members]
        self.fields["reviewer"].choices = [("", _("no one")), *reviewers]  # type: ignore[attr-defined]  # a ChoiceField

    def require(self, *names: str) -> bool:
        """Report each of these fields that is empty."""
        for name in names:
            if name in self.cleaned_data and not self.cleaned_data[name].strip():
                self.add_error(name, _("Enter or choose a value for this action."))
        return self.is_valid()


@post_view(Action.READ)
def change_traces(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Do one action on the selected traces, or on all that match the search."""
    action = ACTIONS.get(request.POST.get("action", ""))
    form = TraceActionForm(request.POST, actor=actor)
    if action is None:
        return _render_traces(request, actor, status=422, actions=form)
    roles.require_action(actor, action.allowed)
    if not (form.is_valid() and form.require(*action.needs)):
        return _render_traces(request, actor, status=422, actions=form)
    selected, is_cut = _select_traces(request, actor)
    if not selected:
        messages.warning(request, _("Nothing was changed: select at least one trace."))
        return _redirect_to_list(request, actor)
    result = action.run(actor, selected, form)
    if isinstance(result, DataTable):
        return csv_response(request, actor, result)
    _report(request, result, is_cut)
    return _redirect_to_list(request, actor)


def _select_traces(request: HttpRequest, actor: Membership) -> tuple[list[Trace], bool]:
    """Return the selected traces, up to the limit, and whether there are more."""
    traces = Trace.objects.filter(project=actor.project)
    if request.POST.get("scope") == EVERYONE:
        search = TraceSearchForm(QueryDict(request.POST.get("query", "")), actor=actor)
        found, _is_search = search.select(traces)
    else:
        ids = [int(each) for each in request.POST.getlist("trace") if each.isascii() and each.isdigit()]
        found = traces.filter(pk__in=[each for each in ids if each < 2**63])
    rows: QuerySet[Trace] = found.select_related("problem", "source", "settlement").order_by("-pk")
    selected = list(rows[: MAX_SELECTED + 1])
    for trace in selected:
        trace.project = actor.project
    return selected[:MAX_SELECTED], len(selected) > MAX_SELECTED


def _redirect_to_list(request: HttpRequest, actor: Membership) -> HttpResponse:
    query = QueryDict(request.POST.get("query", "")).urlencode()
    return redirect(reverse("dashboard:traces", args=[actor.project.slug]) + (f"?{query}" if query else ""))


def _report(request: HttpRequest, outcome: ActionOutcome, is_cut: bool) -> None:
    done = ngettext("%(n)d trace changed.", "%(n)d traces changed.", outcome.n_done) % {"n": outcome.n_done}
    if is_cut:
        done += " " + _(
            "Not all matching traces were changed: one action can change up to %(n)d. Narrow the "
            "search to change the others."
        ) % {"n": MAX_SELECTED}
    (messages.success if outcome.n_done else messages.warning)(request, done)
    for why, n in outcome.refused.most_common(3):
        messages.warning(
            request, ngettext("%(n)d skipped: %(why)s", "%(n)d skipped: %(why)s", n) % {"n": n, "why": why}
        )


# The actions


def _add_tag(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    name = form.cleaned_data["tag"].strip()
    n = tags.add_tag(project_id=actor.project_id, trace_ids=_ids(traces), name=name, by=actor.user, now=timezone.now())
    return _all_done(n)


def _remove_tag(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    name, now = form.cleaned_data["tag"].strip(), timezone.now()
    return _all_done(
        tags.remove_tag(project_id=actor.project_id, trace_ids=_ids(traces), name=name, by=actor.user, now=now)
    )


def _put_first(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    now, project = timezone.now(), actor.project
    group = _find_group(project, form.cleaned_data["audience"])
    n = queue.choose_traces(project_id=project.pk, trace_ids=_ids(traces), group=group, by=actor.user, now=now)
    return _all_done(n)


def _find_group(project: Project, audience: str) -> RaterGroup | None:
    kind, _colon, pk = audience.partition(":")
    if kind == "group":
        return RaterGroup.objects.get(project=project, pk=pk)
    if kind == "rater":
        return queue.ensure_personal_group(rater=Rater.objects.get(project=project, pk=pk), now=timezone.now())
    return None


def _put_back(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    now = timezone.now()
    return _all_done(queue.unchoose_traces(project_id=actor.project_id, trace_ids=_ids(traces), by=actor.user, now=now))


def _request_labels(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    return trace_actions.request_labels(traces=traces, by=actor.user, now=timezone.now())


def _requeue(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    return trace_actions.requeue_traces(traces=traces, by=actor.user, now=timezone.now())


def _assign_adjudication(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    reviewer = User.objects.filter(pk=form.cleaned_data["reviewer"] or 0).first()
    n = assign_adjudication(
        project_id=actor.project_id, trace_ids=_ids(traces), reviewer=reviewer, by=actor.user, now=timezone.now()
    )
    return _all_done(n)


def _make_gold(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    use = GoldUse(form.cleaned_data["use"])
    return trace_actions.make_gold_of_consensus(traces=traces, use=use, by=actor.user, now=timezone.now())


def _change_gold_use(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    use = GoldUse(form.cleaned_data["use"])
    return trace_actions.change_gold_use(traces=traces, use=use, by=actor.user, now=timezone.now())


def _withdraw(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> ActionOutcome:
    active = [trace.pk for trace in traces if trace.withdrawn_at is None]
    reason = form.cleaned_data["reason"].strip()
    withdraw_traces(project=actor.project, trace_ids=active, reason=reason, by=actor.user, now=timezone.now())
    return _all_done(len(active))


def _export(actor: Membership, traces: Sequence[Trace], form: TraceActionForm) -> DataTable:
    return build_selection_table(actor, traces)


def build_selection_table(actor: Membership, traces: Sequence[Trace]) -> DataTable:
    """Build a table of the traces with their state and consensus."""
    revisions = consensus.current_revisions(project_id=actor.project_id).filter(trace__in=_ids(traces))
    settled = dict(revisions.values_list("trace", "first_error"))
    columns = (
        *(TableColumn(name) for name in ("trace", "ref", "problem", "domain", "source")),
        *number_columns("steps", "labels"),
        *(TableColumn(name) for name in ("state", "first_error", "tags", "url")),
    )
    rows = [
        (
            *(row.trace.pk, row.trace.ref, row.trace.problem.title, row.trace.problem.domain),
            *(row.trace.source.name if row.trace.source else "", row.trace.n_steps),
            *(row.settlement.n_readings if row.settlement else 0, _describe_state(row)),
            *(_describe_consensus(row.trace.pk, settled), " ".join(row.tags)),
            reverse("dashboard:trace", args=[actor.project.slug, row.trace.pk]),
        )
        for row in _build_rows(traces)
    ]
    return DataTable("traces", _("selected traces"), columns, rows)


def _describe_state(row: TraceRow) -> str:
    if row.trace.withdrawn_at is not None:
        return "withdrawn"
    if row.is_gold:
        return "gold"
    return row.settlement.state if row.settlement else ""


def _describe_consensus(trace: int, settled: dict[int, int | None]) -> object:
    """Return the position of the first error, "none" for no error, and nothing without a consensus."""
    if trace not in settled:
        return None
    return "none" if settled[trace] is None else settled[trace]


def _ids(traces: Sequence[Trace]) -> list[int]:
    return [trace.pk for trace in traces]


def _all_done(n: int) -> ActionOutcome:
    return ActionOutcome(n, Counter())


@dataclass(frozen=True)
class TraceAction:
    allowed: Action
    run: Callable[[Membership, Sequence[Trace], TraceActionForm], ActionOutcome | DataTable]
    needs: tuple[str, ...] = ()  # fields


ACTIONS = {
    "tag": TraceAction(Action.BRING_IN, _add_tag, ("tag",)),
    "untag": TraceAction(Action.BRING_IN, _remove_tag, ("tag",)),
    "first": TraceAction(Action.PAUSE, _put_first, ("audience",)),
    "back": TraceAction(Action.PAUSE, _put_back),
    "label": TraceAction(Action.ADJUDICATE, _request_labels),
    "requeue": TraceAction(Action.ADJUDICATE, _requeue),
    "reviewer": TraceAction(Action.PAUSE, _assign_adjudication),
    "gold": TraceAction(Action.MAKE_GOLD, _make_gold, ("use",)),
    "use": TraceAction(Action.MAKE_GOLD, _change_gold_use, ("use",)),
    "withdraw": TraceAction(Action.BRING_IN, _withdraw, ("reason",)),
    "export": TraceAction(Action.READ, _export),
}
