"""What two machines agree on: the share that the consensus filter keeps, and how often people agree with it."""

from dataclasses import dataclass

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.access import safe_view
from dashboard.render import project_page
from labeling.models import Rater
from machines import consensus_report
from machines.consensus_report import ConsensusReport
from people.models import Membership
from people.roles import Action
from stats.estimates import Estimate


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


@dataclass(frozen=True)
class ReportRow:
    name: str
    label: str
    estimate: Estimate


@safe_view(Action.READ)
def show_machine_consensus(request: HttpRequest, actor: Membership) -> HttpResponse:
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
        status=422 if form.is_bound and not form.is_valid() else 200,
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
