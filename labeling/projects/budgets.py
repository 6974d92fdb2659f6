"""The budget of a project: no trace is assigned beyond it, and leads are warned at 80 %.

Each submission adds its pay in its own transaction, so `spent` is exact for all committed ones. A claim is refused if
`spent`, plus the usual pay of a trace for every trace that is open in the project, plus one more, exceeds the amount.
Claims do not wait for each other: claims at the same moment may each take the last trace. Open traces can always be
finished, and are paid. So only two things can exceed the budget: open traces that cost more than the usual pay, and
traces that were claimed at the same moment.

Only this module writes ProjectBudget rows.
"""

import datetime as dt
from decimal import Decimal

from django.db import transaction
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import TruncDate
from django.utils.translation import gettext as _

import rawsql
from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import Project, ProjectBudget, Submission
from labeling.models.assignment import AssignmentOrigin, AssignmentState
from labeling.models.rater import RaterKind
from labeling.projects import pay_rates

WARNING_SHARE = Decimal("0.8")


class BudgetNeedsPayRate(Exception):
    """A budget without a pay rate could never be reached."""

    def __init__(self) -> None:
        super().__init__(_("Set the pay per active hour in the settings before you set a budget."))


def set_budget(*, project: Project, amount: Decimal | None, by: User | None, now: dt.datetime) -> None:
    """Set or change the cap, or remove it with None. Its notices can then be sent again. Raises BudgetNeedsPayRate."""
    if amount is not None and project.pay_per_hour is None:
        raise BudgetNeedsPayRate
    with transaction.atomic():
        old = ProjectBudget.objects.filter(pk=project.pk).values_list("amount", flat=True).first()
        if amount is None:
            ProjectBudget.objects.filter(pk=project.pk).delete()
        else:
            new = {"amount": amount, "warned_at": None, "reached_at": None}
            ProjectBudget.objects.update_or_create(project=project, defaults=new)
            recount_spending(project=project, now=now)
        amounts = [None if each is None else str(each) for each in (old, amount)]
        _log("project.budget_set", project.pk, by, now, amount=amounts)


def recount_spending(*, project: Project, now: dt.datetime) -> None:
    """Compute the amount spent from all submissions. The row is locked before they are read, so none is missed."""
    with transaction.atomic():
        if not ProjectBudget.objects.select_for_update(no_key=True).filter(pk=project.pk).exists():
            return
        paid = Submission.objects.filter(
            project=project,
            assignment__state=AssignmentState.SUBMITTED,
            assignment__origin=AssignmentOrigin.HERE,
            assignment__rater__kind=RaterKind.MEMBER,
        )
        by_day = paid.values(day=TruncDate("assignment__submitted_at", tzinfo=dt.UTC)).annotate(
            ms=Sum("total_ms"), n=Count("pk", filter=Q(revision=1))
        )
        priced = by_day.annotate(pay=pay_rates.exact_pay(project, day="day", ms=F("ms"))).order_by()
        rows = list(priced.values_list("pay", "n"))
        spent, n = sum((pay or Decimal(0) for pay, _n in rows), Decimal(0)), sum(n for _pay, n in rows)
        usual = spent / n if n else Decimal(0)
        ProjectBudget.objects.filter(pk=project.pk).update(spent=spent, trace_cost=usual)


def add_pay(*, project_id: int, total_ms: int) -> None:
    """Add the pay of a submission. Call it last in the transaction, so that submissions wait for each other only to
    commit."""
    rawsql.fetch_rows(ADD_PAY_SQL, {"project": project_id, "ms": total_ms})


ADD_PAY_SQL = """
UPDATE labeling_projectbudget b SET spent = b.spent + COALESCE(p.pay_per_hour, 0) * %(ms)s::bigint / 3600000
FROM labeling_project p WHERE p.id = b.project_id AND b.project_id = %(project)s"""


# Whether `report_budgets` has something to report, by the rules of that function and of `queue.is_budget_reached`.
HAS_UNREPORTED = f"""EXISTS (SELECT FROM labeling_projectbudget b WHERE b.reached_at IS NULL AND (
  b.warned_at IS NULL AND b.spent >= {WARNING_SHARE} * b.amount
  OR b.amount < b.spent + b.trace_cost * (1 + (SELECT COUNT(*) FROM labeling_assignment a
    WHERE a.project_id = b.project_id AND a.state IN ('held', 'opened')))))"""  # noqa: S608  our own constant


def report_budgets(*, now: dt.datetime) -> None:
    """Log once that a budget is at 80 %, and once that it is reached. A changed budget is reported again."""
    if not rawsql.fetch_rows(f"SELECT {HAS_UNREPORTED}", ())[0][0]:
        return
    for budget in ProjectBudget.objects.filter(reached_at=None).select_related("project"):
        if queue.is_budget_reached(project_id=budget.pk):
            _report(budget, "reached_at", "project.budget_reached", now)
        elif budget.warned_at is None and budget.spent >= WARNING_SHARE * budget.amount:
            _report(budget, "warned_at", "project.budget_warned", now)


def _report(budget: ProjectBudget, column: str, what: str, now: dt.datetime) -> None:
    with transaction.atomic():
        if not ProjectBudget.objects.filter(pk=budget.pk, **{column: None}).update(**{column: now}):
            return
        _log(what, budget.pk, None, now, amount=str(budget.amount), spent=str(round(budget.spent, 2)))


def _log(what: str, project_id: int, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=project_id, subject=f"project:{project_id}", detail=detail)
