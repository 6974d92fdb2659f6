"""The limits on the traces of a rater: how many are open at once, how many are assigned per day, and the project's
budget.

`claim.sql` applies the same limits; tests/labeling/queue/test_limits.py proves that both agree. Claims do not wait for
each other, so two claims of one rater at the same moment may exceed a limit by one.
"""

import datetime as dt

from django.utils.formats import time_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models import Assignment, Project, ProjectBudget, Rater
from labeling.models.assignment import AssignmentPurpose, AssignmentState
from labeling.models.rater import RaterStage
from labeling.queue.eligibility import QueueRefusal

_RETURNED = (AssignmentState.RELEASED, AssignmentState.LAPSED)


class OpenTracesLimit(QueueRefusal):
    """The rater has as many open traces as the project allows."""

    def __init__(self, limit: int) -> None:
        message = ngettext(
            "You already have %(n)d open trace, the most this project allows. Finish or skip it first.",
            "You already have %(n)d open traces, the most this project allows. Finish or skip one first.",
            limit,
        )
        super().__init__(message % {"n": limit})


class DailyLimit(QueueRefusal):
    """The rater has been assigned as many traces today as the project allows."""

    def __init__(self, limit: int, until: dt.datetime) -> None:
        message = _("You have reached this project’s limit of %(n)d traces a day. You can continue at %(time)s.")
        super().__init__(message % {"n": limit, "time": time_format(localtime(until), "H:i")})


class BudgetReached(QueueRefusal):
    """The pay of submitted and open traces has reached the budget of the project."""

    def __init__(self) -> None:
        super().__init__(
            _("This project’s budget is used up, so no more traces are assigned. All of your work is saved and paid.")
        )


def last_midnight(now: dt.datetime) -> dt.datetime:
    return now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def check_limits(rater: Rater, project: Project, now: dt.datetime) -> None:
    """Raise the limit that keeps an eligible rater from another trace."""
    if Assignment.objects.open().filter(rater=rater).count() >= project.open_limit:
        raise OpenTracesLimit(project.open_limit)
    limit, midnight = project.traces_per_day, last_midnight(now)
    if limit is not None and rater.stage == RaterStage.WORKING and _count_since(rater, midnight) >= limit:
        raise DailyLimit(limit, midnight + dt.timedelta(days=1))
    if is_budget_reached(project_id=project.pk):
        raise BudgetReached


def _count_since(rater: Rater, since: dt.datetime) -> int:
    purposes = (AssignmentPurpose.WORK, AssignmentPurpose.GOLD)
    today = Assignment.objects.filter(rater=rater, lane__isnull=False, held_at__gte=since, purpose__in=purposes)
    return today.exclude(state__in=_RETURNED).count()


def is_budget_reached(*, project_id: int) -> bool:
    """Whether another trace, at its usual pay, would exceed the budget."""
    budget = ProjectBudget.objects.filter(pk=project_id).first()
    if budget is None:
        return False
    n_open = Assignment.objects.open().filter(project=project_id).count()
    return budget.amount < budget.spent + budget.trace_cost * (1 + n_open)
