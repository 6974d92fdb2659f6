"""List the tasks of a user in each of their projects.

Read-only. The number of queries does not depend on the number of projects."""

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from django.db.models import OuterRef, Subquery

import rawsql
from accounts.models import User
from annotate import completion
from labeling import gates, queue
from labeling.gates import OnboardingGate
from labeling.models import Assignment, Judgment, Project, Rater, Step
from labeling.models.project import ProjectState
from people import roles
from people.models import Membership
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
      AND l.arm NOT IN ('training', 'screening', 'gold')
      AND NOT EXISTS (SELECT 1 FROM labeling_assignment a WHERE a.rater_id = r.id AND a.trace_id = e.trace_id)
    LIMIT {COUNT_LIMIT + 1}) counted)
FROM labeling_rater r WHERE r.id = ANY (%(raters)s)
"""  # noqa: S608  made of constants


@dataclass(frozen=True)
class ProjectTodo:
    """A project as its member sees it on the home page."""

    membership: Membership
    rater: Rater | None
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
        if self.rater is not None and self.gate != OnboardingGate.WORK:
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
        return self.rater is not None and is_over and completion.is_offered(self.project)

    @property
    def has_new_guideline(self) -> bool:
        """Whether the guideline has changed since this annotator read it."""
        return (
            self.status == OnboardingGate.GUIDELINE
            and self.rater is not None
            and self.rater.read_guideline_id is not None
        )

    @property
    def may_read(self) -> bool:
        return roles.membership_may(self.membership, Action.READ)

    @property
    def may_begin_rating(self) -> bool:
        is_open = self.project.state == ProjectState.OPEN
        return self.rater is None and is_open and roles.membership_may(self.membership, Action.RATE)

    @property
    def is_work(self) -> bool:
        """Whether the project is listed as work: always for annotators, for others once they rate."""
        return self.rater is not None


def list_todos(user: User) -> list[ProjectTodo]:
    """Return the user's projects that are not archived: those with work first, then by name."""
    rows = Membership.objects.of(user).exclude(project__state=ProjectState.ARCHIVED).order_by("project__name")
    memberships = list(rows.select_related("project__guideline").defer("project__guideline__body"))
    raters = {rater.project_id: rater for rater in Rater.objects.active().filter(user=user)}
    waiting = _count_waiting([rater.pk for rater in raters.values()])
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


def find_opened_assignment(user: User, now: dt.datetime) -> Assignment | None:
    """Return the trace that the user opened last and that is still reserved for them."""
    opened = Assignment.objects.opened().filter(rater__user=user, rater__removed_at=None, lease_ends_at__gt=now)
    return opened.select_related("trace__problem", "project").order_by("-opened_at").first()


class StepMark(NamedTuple):
    """A step of an open trace, as the progress track shows it."""

    rating: int | None
    is_next: bool


def list_step_marks(assignment: Assignment) -> list[StepMark]:
    """Return the ratings of an open trace, step by step."""
    own = Judgment.objects.filter(
        turn__assignment=assignment, turn__revision=assignment.revision, turn__step=OuterRef("pk"), option__position=0
    )
    steps = Step.objects.filter(trace=assignment.trace_id, is_rateable=True).order_by("position")
    ratings = list(steps.annotate(own=Subquery(own.values("rating")[:1])).values_list("own", flat=True))
    following = ratings.index(None) if None in ratings else None
    return [StepMark(rating, number == following) for number, rating in enumerate(ratings)]


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
