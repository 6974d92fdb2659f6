"""The budget: spending is exact with concurrent submissions, claims stop at the cap, and each notice is logged once."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from events.models import Event
from labeling import assignments, queue
from labeling.models import Assignment, Project, ProjectBudget
from labeling.projects import budgets
from labeling.quality import pay, workdays
from tests import concurrency, factories
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db
NOW = factories.NOW


def make_paid_project(**fields: Any) -> Project:
    return factories.make_project(pay_per_hour=Decimal(36), **fields)  # a cent a second


def events(project: Project) -> list[str]:
    logged = Event.objects.filter(project=project.pk, what__startswith="project.budget_").order_by("pk")
    return list(logged.values_list("what", flat=True))


def set_budget(project: Project, amount: str | None) -> None:
    cap = None if amount is None else Decimal(amount)
    budgets.set_budget(project=project, amount=cap, by=None, now=NOW)


def test_a_budget_needs_a_pay_rate() -> None:
    with pytest.raises(budgets.BudgetNeedsPayRate):
        set_budget(factories.make_project(), "5")


def test_spending_of_earlier_work_is_counted_and_equals_the_pay() -> None:
    project = make_paid_project()
    rater = factories.make_rater(project)
    for ms in (10_000, 30_000):
        factories.make_submitted(rater, factories.make_trace(project), ms=ms)
    factories.make_submitted(rater, factories.make_trace(project), ms=99_000, origin="imported")
    set_budget(project, "5")
    budget = ProjectBudget.objects.get()
    assert (budget.spent, budget.trace_cost) == (Decimal("0.40"), Decimal("0.20"))
    workdays.update_workdays(project_id=project.pk, now=NOW)
    assert sum(pay.sum_by_day(project).values()) == budget.spent


def test_claims_reserve_the_usual_pay_and_stop_at_the_cap() -> None:
    """0.40 is spent, a trace usually costs 0.20: of 1.00, three more can be open."""
    project = make_paid_project(open_limit=9, gold_share=0)
    queues.fill_lane(project, 9)
    rater, *others = queues.make_raters(project, 4)
    for ms in (10_000, 30_000):
        factories.make_submitted(rater, factories.make_trace(project), ms=ms)
    set_budget(project, "1")
    for each in others:
        queue.claim_trace(rater_id=each.pk, now=NOW, opened=True)
    with pytest.raises(queue.BudgetReached):
        queue.claim_trace(rater_id=rater.pk, now=NOW)
    budgets.report_budgets(now=NOW)
    set_budget(project, "1.2")
    queue.claim_trace(rater_id=rater.pk, now=NOW, opened=True)
    set_budget(project, None)
    queue.claim_trace(rater_id=rater.pk, now=NOW, opened=True)
    assert events(project)[1] == "project.budget_reached"


def test_each_notice_comes_once_until_the_budget_changes() -> None:
    project = make_paid_project()
    rater = factories.make_rater(project)
    set_budget(project, "1")
    for spent, expected in (("0.79", []), ("0.80", ["warned"]), ("0.90", []), ("1.01", ["reached"]), ("2", [])):
        ProjectBudget.objects.update(spent=Decimal(spent))
        before = len(events(project))
        budgets.report_budgets(now=NOW)
        assert events(project)[before:] == [f"project.budget_{each}" for each in expected]
    for _ in range(10):
        factories.make_submitted(rater, factories.make_trace(project), ms=17_000)
    set_budget(project, "2")  # counts again: 1.70
    budgets.report_budgets(now=NOW)
    assert events(project)[-2:] == ["project.budget_set", "project.budget_warned"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("real_connections")
def test_spending_is_exact_with_concurrent_submissions() -> None:
    project = make_paid_project(open_limit=9, gold_share=0)
    raters = queues.make_raters(project, 6)
    traces = [factories.make_trace(project, ["One."]) for _ in raters]
    clients = [WorkPageClient(factories.make_assignment(*pair)) for pair in zip(raters, traces, strict=True)]
    set_budget(project, "1000")
    for client in clients:
        client.rate([1])

    def submit(client: WorkPageClient) -> None:
        later = NOW + dt.timedelta(minutes=5)
        assignments.submit(**client.place, now=later, by=None, active_ms=10_000)

    concurrency.run_at_once(*[lambda each=each: submit(each) for each in clients])
    assert Assignment.objects.submitted().count() == 6
    counted = ProjectBudget.objects.get().spent
    assert counted >= Decimal("0.60")
    budgets.recount_spending(project=project, now=NOW)
    assert ProjectBudget.objects.get().spent == counted
