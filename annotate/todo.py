"""The things that a user can do: rate in their projects, manage projects, and answer notices about single traces.

Read-only. The number of queries does not depend on the number of projects."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

import rawsql
from accounts.models import User
from jobs.models import Job, JobState
from labeling import assignments, gates, queue
from labeling.gates import OnboardingGate
from labeling.models import (
    Assignment,
    CorrectionRequest,
    DailyProjectStats,
    Judgment,
    Project,
    ProjectStats,
    Rater,
    Step,
)
from labeling.models.assignment import AssignmentState
from labeling.models.project import ProjectState, Protocol
from live import sessions
from people import roles
from people.models import MemberMessage, Membership
from people.roles import Action

COUNT_LIMIT = 500  # annotators need no larger number, and counting further would be slow
_COUNT_STEP = 10

MIN_TIMES = 10  # a median of fewer times would mislead

# Active times of a project's latest traces that were rated here. Reads at most 100 traces per project.
_RECENT_TIMES_SQL = """
SELECT p.id, (
  SELECT array_agg(s.total_ms) FROM (
    SELECT a.id, a.origin, a.purpose FROM labeling_assignment a
    WHERE a.project_id = p.id AND a.state = 'submitted' AND a.submitted_at IS NOT NULL
    ORDER BY a.submitted_at DESC LIMIT 100) latest
  JOIN labeling_submission s ON s.assignment_id = latest.id AND s.revision = 1
  WHERE latest.origin = 'here' AND latest.purpose IN ('work', 'gold') AND s.total_ms > 0)
FROM labeling_project p WHERE p.id = ANY (%(projects)s)
"""

# Open queue entries whose trace this rater has not had yet. Reads at most the rater's own traces and COUNT_LIMIT + 1
# others, however long the queue is.
_WAITING_SQL = f"""
SELECT r.id, (
  SELECT COUNT(*) FROM (
    SELECT 1 FROM labeling_queueentry e JOIN labeling_lane l ON l.id = e.lane_id
    WHERE l.project_id = r.project_id AND l.closed_at IS NULL AND e.is_open
      AND l.arm NOT IN ('training', 'screening', 'gold') AND (l.group_id IS NULL OR EXISTS (
        SELECT 1 FROM labeling_ratergroup_raters g WHERE g.ratergroup_id = l.group_id AND g.rater_id = r.id))
      AND NOT EXISTS (SELECT 1 FROM labeling_assignment a WHERE a.rater_id = r.id AND a.trace_id = e.trace_id)
    LIMIT {COUNT_LIMIT + 1}) counted)
FROM labeling_rater r WHERE r.id = ANY (%(raters)s)
"""  # noqa: S608  made of constants


@dataclass(frozen=True)
class ProjectTodo:
    """A project as its member sees it on the home page."""

    membership: Membership
    rater: Rater | None  # always for annotators, for others once they rate
    waiting: int  # exact, up to COUNT_LIMIT + 1; never shown, because it would reveal which trace was hidden gold
    empty_reason: str = ""  # why nothing is waiting
    typical_time: dt.timedelta | None = None  # median active time of a trace; None for too few traces

    @property
    def project(self) -> Project:
        return self.membership.project

    @property
    def over(self) -> int:
        """Return the largest multiple of ten below `waiting`."""
        return max(self.waiting - 1, 0) // _COUNT_STEP * _COUNT_STEP

    @property
    def at_most(self) -> int:
        return self.over + _COUNT_STEP

    @property
    def status(self) -> str:
        """Return the project's state, "rater_paused", the gate of the onboarding, "waiting" or "nothing"."""
        if self.project.state != ProjectState.OPEN:
            return str(self.project.state)
        if self.rater is not None and self.rater.paused_at is not None:
            return "rater_paused"
        if self.gate != OnboardingGate.WORK:
            return str(self.gate)
        return "waiting" if self.waiting else "nothing"

    @property
    def can_begin(self) -> bool:
        return self.status == "waiting" or (self.status == self.gate and self.gate != OnboardingGate.FAILED)

    @property
    def reason(self) -> str:
        """Say why there is nothing to rate now, in the same words as the work page; empty if there is work."""
        if self.rater is None:
            return ""
        return queue.ineligibility_reason(self.rater, self.project) or self.empty_reason

    @property
    def gate(self) -> OnboardingGate:
        if self.rater is None:
            return OnboardingGate.WORK
        return gates.next_gate(rater=self.rater, project=self.project)

    @property
    def offers_completion(self) -> bool:
        """Whether the work here is over and the project has a completion code or link."""
        is_over = self.status in ("nothing", ProjectState.CLOSED, ProjectState.PAUSED)
        return self.rater is not None and is_over and self.project.offers_completion

    @property
    def has_new_guideline(self) -> bool:
        """Whether the guideline has changed since this annotator read it."""
        return bool(self.status == OnboardingGate.GUIDELINE and self.rater and self.rater.read_guideline_id)

    @property
    def may_read(self) -> bool:
        return roles.membership_may(self.membership, Action.READ)

    @property
    def may_begin_rating(self) -> bool:
        is_open = self.project.state == ProjectState.OPEN
        return self.rater is None and is_open and roles.membership_may(self.membership, Action.RATE)


def list_todos(user: User) -> list[ProjectTodo]:
    """Return the user's projects that are not archived: those with work first, then by name."""
    rows = Membership.objects.of(user).exclude(project__state=ProjectState.ARCHIVED).order_by("project__name")
    memberships = list(rows.select_related("project__guideline").defer("project__guideline__body"))
    raters = {rater.project_id: rater for rater in Rater.objects.active().filter(user=user)}
    waiting = _count_waiting([rater.pk for rater in raters.values()])
    live_projects = {each.project_id for each in memberships if each.project.protocol == Protocol.LIVE}
    waiting |= sessions.count_waiting([rater.pk for rater in raters.values() if rater.project_id in live_projects])
    empty = [pk for pk, n in waiting.items() if not n]
    reasons = queue.explain_nothing_left(empty) if empty else {}
    times = _median_times(list(raters))
    todos = [
        ProjectTodo(each, rater, waiting.get(rater.pk, 0), str(reasons.get(rater.pk, "")), times.get(each.project_id))
        if (rater := raters.get(each.project_id))
        else ProjectTodo(each, None, 0)
        for each in memberships
    ]
    return sorted(todos, key=lambda each: not each.can_begin)  # stable: by name within each half


MAX_OPENED = 20


@dataclass(frozen=True)
class OpenedTrace:
    """A trace that the user has begun, or is correcting."""

    assignment: Assignment
    marks: list["StepMark"]


def list_opened_traces(user: User, now: dt.datetime) -> list[OpenedTrace]:
    """Return the traces that the user can continue, the one opened last first. Two queries."""
    is_open = Q(state=AssignmentState.OPENED, lease_ends_at__gt=now) | Q(reopened_at__isnull=False)
    own = Assignment.objects.filter(is_open, rater__user=user, rater__removed_at=None)
    rows = list(own.select_related("trace__problem", "project").order_by("-opened_at")[:MAX_OPENED])
    marks = _list_step_marks(rows)
    return [OpenedTrace(row, marks[row.pk]) for row in rows]


class StepMark(NamedTuple):
    """A step of an open trace, as the progress track shows it."""

    rating: int | None
    is_next: bool


def _list_step_marks(assignments: Sequence[Assignment]) -> dict[int, list[StepMark]]:
    """Return the ratings of open traces, step by step."""
    own = Judgment.objects.filter(
        turn__assignment=OuterRef("trace__assignments"),
        turn__revision=OuterRef("trace__assignments__revision"),
        turn__step=OuterRef("pk"),
        option__position=0,
    )
    steps = Step.objects.filter(trace__assignments__in=assignments, is_rateable=True).order_by("position")
    rated = steps.annotate(own=Subquery(own.values("rating")[:1])).values_list("trace__assignments", "own")
    ratings: dict[int, list[int | None]] = {each.pk: [] for each in assignments}
    for assignment, rating in rated if assignments else ():
        ratings[assignment].append(rating)
    following = {pk: each.index(None) if None in each else None for pk, each in ratings.items()}
    return {
        pk: [StepMark(rating, number == following[pk]) for number, rating in enumerate(each)]
        for pk, each in ratings.items()
    }


def _median_times(projects: Collection[int]) -> dict[int, dt.timedelta]:
    if not projects:
        return {}
    times = rawsql.fetch_rows(_RECENT_TIMES_SQL, {"projects": sorted(projects)})
    return {
        project: dt.timedelta(milliseconds=median(each))
        for project, each in times
        if each is not None and len(each) >= MIN_TIMES
    }


def _count_waiting(raters: Collection[int]) -> dict[int, int]:
    return dict(rawsql.fetch_rows(_WAITING_SQL, {"raters": sorted(raters)})) if raters else {}


@dataclass(frozen=True)
class ManagedProject:
    todo: ProjectTodo
    settled: int
    total: int  # 0 before the first submission
    pending: Sequence[str]  # what this user should act on
    last_worked_on: dt.date | None

    @property
    def project(self) -> Project:
        return self.todo.project


def list_managed_projects(todos: Iterable[ProjectTodo]) -> list[ManagedProject]:
    managed = [each for each in todos if each.may_read]
    keys = [each.project.pk for each in managed]
    if not keys:
        return []
    rows = ProjectStats.objects.filter(project__in=keys, computed_at__isnull=False)
    columns = ("content__settled__traces", "content__settled__of", "content__settlements__contested")
    stats = {pk: [n or 0 for n in counts] for pk, *counts in rows.values_list("project_id", *columns)}
    paused = _count_by(Rater.objects.active().filter(project__in=keys, paused_at__isnull=False), "project")
    subjects = [f"project:{pk}" for pk in keys]
    failed = _count_by(Job.objects.filter(subject__in=subjects, state=JobState.FAILED), "subject")
    asked = _count_by(
        MemberMessage.objects.to_leads().filter(membership__project__in=keys, read_at=None), "membership__project"
    )
    last_days = dict(
        DailyProjectStats.objects.filter(project__in=keys).values_list("project").annotate(Max("day")).order_by()
    )
    projects = []
    for each in managed:
        pk = each.project.pk
        settled, total, contested = stats.get(pk, (0, 0, 0))
        pending = _describe_pending(
            each, contested, paused.get(pk, 0), failed.get(f"project:{pk}", 0), asked.get(pk, 0)
        )
        projects.append(ManagedProject(each, settled, total, pending, last_days.get(pk)))
    return projects


def _describe_pending(todo: ProjectTodo, contested: int, paused: int, failed: int, asked: int) -> list[str]:
    """Describe what needs attention and what this member's role allows them to act on."""
    counts = (
        (Action.ADJUDICATE, contested, _("%(n)d contested")),
        (Action.PAUSE, paused, _("%(n)d paused")),
        (Action.WRITE, asked, ngettext("%(n)d question", "%(n)d questions", asked)),
        (Action.READ, failed, ngettext("%(n)d job failed", "%(n)d jobs failed", failed)),
    )
    return [text % {"n": n} for action, n, text in counts if n and roles.membership_may(todo.membership, action)]


def _count_by(rows: QuerySet[Any, Any], by: str) -> dict[Any, int]:
    return dict(rows.values_list(by).annotate(Count("pk")).order_by())


MAX_RECLAIMED = 5  # acknowledging one brings up the next


def list_reclaimed(user: User, slug: str | None = None, *, exclude: int | None = None) -> QuerySet[Assignment]:
    """Return unacknowledged reclaimed traces, newest first, in one project or in all. One query."""
    rated = Q(
        turns__revision=F("revision"), turns__judgments__option__position=0, turns__judgments__rating__isnull=False
    )
    rows = Assignment.objects.filter(
        rater__user=user,
        rater__removed_at=None,
        is_end_news=True,
        state__in=[AssignmentState.RELEASED, AssignmentState.LAPSED],
    ).exclude(Q(project__state=ProjectState.ARCHIVED) | Q(pk=exclude))
    if slug is not None:
        rows = rows.filter(project__slug=slug)
    rows = rows.annotate(n_rated=Count("turns", filter=rated, distinct=True))
    return rows.select_related("project", "trace__problem").order_by("-ended_at", "-pk")[:MAX_RECLAIMED]


def list_asked_assignments(rater: Rater | None) -> list[int]:
    """Return the open traces about whose steps the rater has asked the leads."""
    if rater is None:
        return []
    asked = MemberMessage.objects.to_leads().filter(membership__user=rater.user_id, trace__isnull=False)
    opened = Assignment.objects.opened().filter(rater=rater, trace__in=asked.values("trace"))
    return list(opened.values_list("pk", flat=True))


def list_reopened_requests(user: User, slug: str) -> QuerySet[CorrectionRequest]:
    """Return the open correction requests for submissions that the user has reopened in a project. One query."""
    requests = assignments.open_correction_requests(user=user)
    return requests.filter(assignment__project__slug=slug, assignment__reopened_at__isnull=False)


def find_correction_request(assignment: int, user: User) -> CorrectionRequest | None:
    return assignments.open_correction_requests(user=user).filter(assignment=assignment).first()
