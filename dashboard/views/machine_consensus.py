"""What two machines agree on: the share that the consensus filter keeps, how often people agree with it, and the route
that lets both settle it."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.access import post_view, safe_view
from dashboard.render import project_page
from labeling.models import Rater
from machines import consensus_report, routes
from machines.consensus_report import ConsensusReport
from machines.license_strata import PROMISES
from machines.licenses import MIN_RETEST_SHARE
from machines.routes import RouteRefused
from people import roles
from people.models import Membership
from people.roles import Action
from stats.estimates import Estimate

_MAX_ROUTES = 20


class MachinesForm(forms.Form):
    first = forms.ModelChoiceField(label=gettext_lazy("Machine"), queryset=Rater.objects.none())
    second = forms.ModelChoiceField(label=gettext_lazy("Compared with"), queryset=Rater.objects.none())

    def __init__(self, data: object, machines: list[Rater]) -> None:
        super().__init__(data or None)  # type: ignore[arg-type]  # a QueryDict
        for field in self.fields.values():
            field.queryset = Rater.objects.filter(pk__in=[each.pk for each in machines])  # type: ignore[attr-defined]  # the stubs know it only on the form's class
            field.label_from_instance = _name_machine  # type: ignore[attr-defined]  # as above


def _name_machine(rater: Rater) -> str:
    return rater.machine


class RouteForm(forms.Form):
    promised = forms.TypedChoiceField(
        label=gettext_lazy("Promised precision of what is kept"),
        coerce=float,
        choices=[(each, f"{each:.2f}") for each in PROMISES],
        initial=0.9,
    )
    retest_share = forms.FloatField(
        label=gettext_lazy("Re-test share"),
        initial=0.1,
        min_value=MIN_RETEST_SHARE,
        max_value=1,
        help_text=gettext_lazy("Share of the traces that people label as usual, to check the machines."),
    )
    puts_disagreement_first = forms.BooleanField(
        label=gettext_lazy("Let people label first what the machines disagree on"),
        initial=True,
        required=False,
        help_text=gettext_lazy("Sets the acquisition “disagreement” for the next batches."),
    )


@dataclass(frozen=True)
class ReportRow:
    name: str
    label: str
    estimate: Estimate


@safe_view(Action.READ)
def show_machine_consensus(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_consensus(request, actor)


@post_view(Action.LICENSE)
def open_route(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Weigh the evidence about the two machines in the query, and open the route."""
    chosen = MachinesForm(request.GET, consensus_report.list_machines(actor.project))
    form = RouteForm(request.POST, auto_id="id_route_%s")
    if not chosen.is_bound or not chosen.is_valid() or not form.is_valid():
        return _render_consensus(request, actor, status=422, route_form=form)
    first, second = chosen.cleaned_data["first"], chosen.cleaned_data["second"]
    try:
        routes.request_route(first=first, second=second, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except RouteRefused as error:
        return _render_consensus(request, actor, status=422, route_form=form, problem=str(error))
    messages.success(request, _("The evidence is being weighed. Reload this page in a few seconds."))
    query = urlencode({"first": first.pk, "second": second.pk})
    return redirect(f"{reverse('dashboard:machine_consensus', args=[actor.project.slug])}?{query}")


@post_view(Action.LICENSE)
def close_route(request: HttpRequest, actor: Membership, route: int) -> HttpResponse:
    """Close a route. With `returns`, traces that it settled go back to people, also after it was closed."""
    row = get_object_or_404(routes.list_routes(actor.project_id), pk=route)
    returns = request.POST.get("returns") == "1"
    routes.close_route(route=row, by=actor.user, now=timezone.now(), returns_traces=returns)
    messages.success(request, _("Traces returned to people.") if returns else _("Route closed."))
    return redirect("dashboard:machine_consensus", actor.project.slug)


def _render_consensus(
    request: HttpRequest,
    actor: Membership,
    *,
    status: int = 200,
    problem: str = "",
    route_form: RouteForm | None = None,
) -> HttpResponse:
    machines = consensus_report.list_machines(actor.project)
    form = MachinesForm(request.GET, machines)
    report, rows = None, list[ReportRow]()
    if form.is_bound and form.is_valid():
        first, second = form.cleaned_data["first"], form.cleaned_data["second"]
        report = consensus_report.compare_machines(first, second)
        rows = _list_rows(report, first, second)
    return project_page(
        request,
        actor,
        "dashboard/machine_consensus.html",
        here="judges",
        status=422 if form.is_bound and not form.is_valid() else status,
        problem=problem,
        query=request.GET.urlencode(),
        routes=[routes.describe_route(each) for each in routes.list_routes(actor.project_id)[:_MAX_ROUTES]],
        route_form=route_form or RouteForm(auto_id="id_route_%s"),
        may_license=roles.membership_may(actor, Action.LICENSE),
        form=form,
        machines=machines,
        report=report,
        rows=rows,
    )


def _list_rows(report: ConsensusReport, first: Rater, second: Rater) -> list[ReportRow]:
    of = _("Labels of %(machine)s that equal the human consensus, %(where)s")
    dropped, overall = _("where they disagree"), _("over all")
    one, other = first.machine, second.machine
    labels = {
        "kept": _("Traces on which both name the same first error"),
        "precision_kept": _("Labels of both that equal the human consensus, where they agree"),
        "first_dropped": of % {"machine": one, "where": dropped},
        "second_dropped": of % {"machine": other, "where": dropped},
        "first_overall": of % {"machine": one, "where": overall},
        "second_overall": of % {"machine": other, "where": overall},
    }
    return [ReportRow(name, label, getattr(report, name)) for name, label in labels.items()]
