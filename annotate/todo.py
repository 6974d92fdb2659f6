"""What there is to do for a person, project by project. Reads alone; the same number of queries however many."""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncWeek
from django.utils import timezone

import statements
from accounts.models import User
from annotate import completion
from labeling import queue, stations
from labeling.models import Assignment, GoldAnswer, Project, Rater, Submission
from labeling.models.assignment import AssignmentState, Purpose
from labeling.models.project import ProjectState
from labeling.models.quality import GoldUse, Verdict
from labeling.stations import Station
from people import roles
from people.models import Membership
from people.roles import Action

# Nobody plans by more than this, and counting further would cost.
COUNTED = 500

# Entries with free slots whose trace this rater has not had yet. It reads no further than the rater's own traces and
# the first five hundred others, whatever the size of the queue.
_WAITING = f"""
SELECT r.id, (
  SELECT COUNT(*) FROM (
    SELECT 1 FROM labeling_queueentry e JOIN labeling_lane l ON l.id = e.lane_id
    WHERE l.project_id = r.project_id AND l.closed_at IS NULL AND e.is_open
      AND l.arm NOT IN ('training', 'screening', 'gold')
      AND NOT EXISTS (SELECT 1 FROM labeling_assignment a WHERE a.rater_id = r.id AND a.trace_id = e.trace_id)
    LIMIT {COUNTED + 1}) counted)
FROM labeling_rater r WHERE r.id IN ({{places}})
"""  # noqa: S608  the one number in it is ours


@dataclass(frozen=True)
class Todo:
    """One project as its member sees it at home."""

    membership: Membership
    rater: Rater | None
    waiting: int  # one more than COUNTED says "more than that"
    emptiness: str = ""  # why nothing waits, in the queue's words

    @property
    def project(self) -> Project:
        return self.membership.project

    @property
    def is_over_counted(self) -> bool:
        return self.waiting > COUNTED

    @property
    def says(self) -> str:
        """Which of the few things there are to say about work in this project."""
        if self.project.state != ProjectState.OPEN:
            return str(self.project.state)
        if self.rater is not None and self.rater.paused_at is not None:
            return "rater_paused"
        if self.rater is not None and self.station != Station.WORK:
            return str(self.station)
        return "waiting" if self.waiting else "nothing"

    @property
    def why(self) -> str:
        """Why there is nothing to rate here now and what next, in the words of the work page; empty where there is."""
        if self.rater is None:
            return ""
        return queue.why_not(self.rater, self.project) or self.emptiness

    @property
    def station(self) -> Station:
        """What this person must do first here."""
        if self.rater is None:
            return Station.WORK
        return stations.next_of(rater=self.rater, project=self.project)

    @property
    def offers_completion(self) -> bool:
        """Whether there may be something to take back to a crowd platform, at the end of the work."""
        is_over = self.says in ("nothing", ProjectState.CLOSED, ProjectState.PAUSED)
        return self.rater is not None and is_over and completion.is_offered(self.project)

    @property
    def may_read(self) -> bool:
        """Whether the pages of the project itself are open to them."""
        return roles.does(self.membership, Action.READ)

    @property
    def may_begin_rating(self) -> bool:
        is_open = self.project.state == ProjectState.OPEN
        return self.rater is None and is_open and roles.does(self.membership, Action.RATE)

    @property
    def is_work(self) -> bool:
        """Whether this stands in the list of work: for annotators always, for others once they have rated."""
        return self.rater is not None


class Earned(NamedTuple):
    """By active time and the rate of each project."""

    amount: Decimal
    currency: str


@dataclass(frozen=True)
class Today:
    n_traces: int
    n_steps: int
    active: dt.timedelta
    earned: list[Earned]


class Week(NamedTuple):
    """How often the first error was right in one project's hidden checks of one whole week. Never of which trace."""

    project: str
    begins: dt.date
    right: int
    n: int


def of(user: User) -> list[Todo]:
    """Every project of this person that is not archived, by name."""
    memberships = list(
        Membership.objects.of(user).exclude(project__state=ProjectState.ARCHIVED).order_by("project__name")
    )
    raters = {rater.project_id: rater for rater in Rater.objects.filter(user=user, removed_at=None)}
    waiting = _waiting([rater.pk for rater in raters.values()])
    empty = [pk for pk, n in waiting.items() if not n]
    why = queue.why_nothing(empty) if empty else {}
    return [
        Todo(each, rater, waiting.get(rater.pk, 0) if rater else 0, str(why.get(rater.pk, "")) if rater else "")
        for each in memberships
        for rater in [raters.get(each.project_id)]
    ]


def opened(user: User, now: dt.datetime) -> Assignment | None:
    """What this person was in the middle of, if it is still kept for them."""
    mine = Assignment.objects.filter(
        rater__user=user, rater__removed_at=None, state=AssignmentState.OPENED, lease_ends_at__gt=now
    )
    return mine.select_related("trace__problem", "project").order_by("-opened_at").first()


def today(user: User, since: dt.datetime) -> Today:
    """What was submitted since the day began, corrections of older work left out."""
    done = Submission.objects.filter(
        assignment__rater__user=user, submitted_at__gte=since, revision=1, assignment__purpose__in=_PAID
    )
    sums = done.aggregate(
        n=Count("pk", distinct=True),
        steps=Count("assignment__turns", filter=Q(assignment__turns__revision=1), distinct=True),
    )
    times = list(done.values_list("project__pay_per_hour", "project__currency").annotate(ms=Sum("total_ms")).order_by())
    ms = sum(each or 0 for _, _, each in times)
    active = dt.timedelta(milliseconds=ms)
    return Today(n_traces=sums["n"], n_steps=sums["steps"], active=active, earned=_earned(times))


def _earned(times: Iterable[tuple[Decimal | None, str, int | None]]) -> list[Earned]:
    """One amount a currency, rounded once, at the end."""
    by_currency: dict[str, Decimal] = defaultdict(Decimal)
    for rate, currency, ms in times:
        if rate is not None:
            by_currency[currency] += rate * (ms or 0) / (3600 * 1000)
    cent = Decimal("0.01")
    return [Earned(amount.quantize(cent), currency) for currency, amount in sorted(by_currency.items())]


# A count of fewer would say too much about each of them.
LEAST_CHECKS = 5


def weeks(user: User, now: dt.datetime, back: int = 4) -> list[Week]:
    """Hidden checks of the last whole weeks, where the project tells them. The week that runs is left out: a count that
    grows by one would say which trace it was."""
    today = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    this_week = today - dt.timedelta(days=today.weekday())
    answers = GoldAnswer.objects.filter(
        rater__user=user,
        use=GoldUse.HIDDEN,
        project__shows_weekly_gold=True,
        answered_at__gte=this_week - dt.timedelta(weeks=back),
        answered_at__lt=this_week,
    )
    counted = (
        answers.annotate(week=TruncWeek("answered_at"))
        .values_list("project__name", "week")
        .annotate(right=Count("pk", filter=Q(verdict=Verdict.RIGHT)), n=Count("pk"))
        .order_by("-week", "project__name")
    )
    return [Week(name, week.date(), right, n) for name, week, right, n in counted if n >= LEAST_CHECKS]


# Hidden gold counts like any work: a count without it would say which trace was gold.
_PAID = (Purpose.WORK, Purpose.GOLD, Purpose.SCREENING, Purpose.TRAINING)


def _waiting(raters: Collection[int]) -> dict[int, int]:
    if not raters:
        return {}
    places = ", ".join(["%s"] * len(raters))
    return dict(statements.rows(_WAITING.format(places=places), list(raters)))
