"""Pay by person and period, the budget, and the cost to finish."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard import money, rater_names, statistics
from dashboard.access import post_view, safe_view
from dashboard.figures import DataTable, TableColumn, number_columns
from dashboard.render import project_page
from labeling.models import Project, ProjectBudget, Rater
from labeling.projects import budgets
from labeling.quality import pay
from labeling.quality.pay import PayRow
from labeling.quality.project_stats import load_project_stats
from people.models import Membership
from people.roles import Action
from stats import cost_forecast
from stats.cost_forecast import CostForecast, RemainingWork

_MS_PER_HOUR = 3_600_000


class PayFilterForm(forms.Form):
    since = forms.DateField(
        label=gettext_lazy("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    until = forms.DateField(
        label=gettext_lazy("To"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    period = forms.ChoiceField(
        label=gettext_lazy("Rows"),
        required=False,
        choices=(
            ("", gettext_lazy("one per person")),
            ("month", gettext_lazy("by month")),
            ("week", gettext_lazy("by week")),
            ("day", gettext_lazy("by day")),
        ),
    )


class BudgetForm(forms.Form):
    amount = forms.DecimalField(
        label=gettext_lazy("Budget"),
        required=False,
        min_value=Decimal("0.01"),
        max_digits=12,
        decimal_places=2,
        help_text=gettext_lazy(
            "Leave empty for no budget. You will be notified when 80% of the budget is spent and when it is reached."
        ),
    )


@dataclass(frozen=True)
class PaidPerson:
    """One row of the table."""

    row: PayRow
    rater: Rater
    name: str
    period: str
    amount: str

    @property
    def hours(self) -> float:
        return self.row.paid_ms / _MS_PER_HOUR


@dataclass(frozen=True)
class BudgetStatus:
    amount: str
    spent: str
    share: float
    is_reached: bool
    is_low: bool


@dataclass(frozen=True)
class CostToFinish:
    forecast: CostForecast
    amount: str
    interval: str
    why: str  # no value or no interval


@safe_view(Action.PAUSE)
def show_pay(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_pay(request, actor)


@post_view(Action.PAUSE)
def set_budget(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = BudgetForm(request.POST)
    if not form.is_valid():
        return _render_pay(request, actor, status=422, budget_form=form)
    try:
        budgets.set_budget(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except budgets.BudgetNeedsPayRate as error:
        form.add_error("amount", str(error))
        return _render_pay(request, actor, status=422, budget_form=form)
    messages.success(request, _("Budget saved.") if form.cleaned_data["amount"] else _("Budget removed."))
    return redirect("dashboard:pay", actor.project.slug)


def _render_pay(request: HttpRequest, actor: Membership, *, status: int = 200, **context: Any) -> HttpResponse:
    """Render the page. Invalid dates show the whole time."""
    project, form = actor.project, PayFilterForm(request.GET)
    filters = form.cleaned_data if form.is_valid() else {}
    rows = pay.list_pay(project=project, **filters)
    people = _list_people(actor, rows)
    budget = ProjectBudget.objects.filter(pk=project.pk).first()
    context.setdefault("budget_form", BudgetForm(initial={"amount": budget.amount if budget else None}))
    query = request.GET.copy()
    query.pop("csv", None)
    return project_page(
        request,
        actor,
        "dashboard/pay.html",
        here="pay",
        status=status,
        tables=[_build_table(project, people)],
        form=form,
        query=query.urlencode(),
        people=people,
        hours=sum(row.paid_ms for row in rows) / _MS_PER_HOUR,
        n_traces=sum(row.traces for row in rows),
        total=_format(project, sum((row.pay for row in rows), Decimal(0))),
        paid=_format(project, sum(pay.sum_by_day(project).values(), Decimal(0))),
        budget=_describe_budget(project, budget),
        to_finish=_forecast(project),
        **context,
    )


def _format(project: Project, amount: Decimal) -> str:
    return money.format_amount(project, None if project.pay_per_hour is None else amount)


def _list_people(actor: Membership, rows: Sequence[PayRow]) -> list[PaidPerson]:
    project = actor.project
    raters = Rater.objects.select_related("user").in_bulk({row.rater_id for row in rows})
    people = [
        PaidPerson(
            row,
            raters[row.rater_id],
            rater_names.get_display_name(raters[row.rater_id], actor),
            date_format(row.begins, "j M Y") if row.begins else "",
            _format(project, row.pay),
        )
        for row in rows
    ]
    return sorted(people, key=lambda each: (each.name.casefold(), each.row.rater_id, each.row.begins or dt.date.min))


def _build_table(project: Project, people: Sequence[PaidPerson]) -> DataTable:
    columns = (
        *(TableColumn(name) for name in (_("Name"), _("Pseudonym"), _("Member"), _("Begins"))),
        *number_columns(_("Days"), _("Traces"), _("Hours"), _("Pay, %(currency)s") % {"currency": project.currency}),
    )
    has_rate = project.pay_per_hour is not None
    rows = [
        (
            *(each.name, each.rater.labeler, _("removed") if each.rater.removed_at else _("yes"), each.row.begins),
            *(each.row.days, each.row.traces, round(each.hours, 4), each.row.pay if has_rate else None),
        )
        for each in people
    ]
    return DataTable("pay", _("pay by person"), columns, rows)


def _describe_budget(project: Project, budget: ProjectBudget | None) -> BudgetStatus | None:
    if budget is None:
        return None
    share = budget.spent / budget.amount
    return BudgetStatus(
        money.format_amount(project, budget.amount),
        money.format_amount(project, budget.spent),
        min(float(share), 1.0),
        is_reached=budget.reached_at is not None,
        is_low=share >= budgets.WARNING_SHARE,
    )


def _forecast(project: Project) -> CostToFinish | None:
    """Forecast from the stored count of remaining work; None before there is any, and without a pay rate."""
    stats = load_project_stats(project_id=project.pk)
    if stats is None or project.pay_per_hour is None or "remaining" not in stats.content:
        return None
    by_rater = [(float(row.pay), row.traces) for row in pay.list_pay(project=project) if row.traces]
    forecast = cost_forecast.forecast_cost(
        pay=[each for each, _n in by_rater],
        labels=[n for _pay, n in by_rater],
        work=RemainingWork(**stats.content["remaining"]),
    )
    reason = forecast.reason or forecast.interval_reason
    low, high = (money.format_amount(project, each) for each in (forecast.low, forecast.high))
    return CostToFinish(
        forecast,
        money.format_amount(project, forecast.value),
        "" if forecast.low is None else f"[{low}, {high}]",
        statistics.explain_missing_value(reason) if reason else "",
    )
