"""What there is to do for a person, project by project. Reads alone; the same number of queries however many."""

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

# Nobody plans by more than this, and counting further would cost.
COUNT_LIMIT = 500
_COUNT_STEP = 10

# Fewer say nothing of what is usual.
MIN_TIMES = 10

# Active times of the latest traces of a project that were rated here: it reads no further than a hundred of them.
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

# Entries with free slots whose trace this rater has not had yet. It reads no further than the rater's own traces and
# the first five hundred others, whatever the size of the queue.
_WAITING_SQL = f"""
SELECT r.id, (
  SELECT COUNT(*) FROM (
    SELECT 1 FROM labeling_queueentry e JOIN labeling_lane l ON l.id = e.lane_id
    WHERE l.project_id = r.project_id AND l.closed_at IS NULL AND e.is_open
      AND l.arm NOT IN ('training', 'screening', 'gold')
      AND NOT EXISTS (SELECT 1 FROM labeling_assignment a WHERE a.rater_id = r.id AND a.trace_id = e.trace_id)
    LIMIT {COUNT_LIMIT + 1}) counted)
FROM labeling_rater r WHERE r.id = ANY (%(raters)s)
"""  # noqa: S608  the one number in it is ours


@dataclass(frozen=True)
class ProjectTodo:
    """One project as its member sees it at home."""

    membership: Membership
    rater: Rater | None
    waiting: int  # for us alone, and no more than one above COUNTED
    emptiness: str = ""  # why nothing waits, in the queue's words
    usual: dt.timedelta | None = None  # active time of a trace, where enough were rated to tell

    @property
    def project(self) -> Project:
        return self.membership.project

    @property
    def over(self) -> int:
        """More than so many wait. A count of each trace would say which was hidden gold: it stays where it was then."""
        return max(self.waiting - 1, 0) // _COUNT_STEP * _COUNT_STEP

    @property
    def at_most(self) -> int:
        return self.over + _COUNT_STEP

    @property
    def says(self) -> str:
        """Which of the few things there are to say about work in this project."""
        if self.project.state != ProjectState.OPEN:
            return str(self.project.state)
        if self.rater is not None and self.rater.paused_at is not None:
            return "rater_paused"
        if self.rater is not None and self.station != OnboardingGate.WORK:
            return str(self.station)
        return "waiting" if self.waiting else "nothing"

    @property
    def can_begin(self) -> bool:
        return self.says == "waiting" or (self.says == self.station and self.station != OnboardingGate.FAILED)

    @property
    def why(self) -> str:
        """Why there is nothing to rate here now and what next, in the words of the work page; empty where there is."""
        if self.rater is None:
            return ""
        return queue.ineligibility_reason(self.rater, self.project) or self.emptiness

    @property
    def station(self) -> OnboardingGate:
        """What this person must do first here."""
        if self.rater is None:
            return OnboardingGate.WORK
        return gates.next_gate(rater=self.rater, project=self.project)

    @property
    def offers_completion(self) -> bool:
        """Whether there may be something to take back to a crowd platform, at the end of the work."""
        is_over = self.says in ("nothing", ProjectState.CLOSED, ProjectState.PAUSED)
        return self.rater is not None and is_over and completion.is_offered(self.project)

    @property
    def is_changed_guideline(self) -> bool:
        """Whether what this person has read before is to be read anew."""
        return (
            self.says == OnboardingGate.GUIDELINE
            and self.rater is not None
            and self.rater.read_guideline_id is not None
        )

    @property
    def may_read(self) -> bool:
        """Whether the pages of the project itself are open to them."""
        return roles.membership_may(self.membership, Action.READ)

    @property
    def may_begin_rating(self) -> bool:
        is_open = self.project.state == ProjectState.OPEN
        return self.rater is None and is_open and roles.membership_may(self.membership, Action.RATE)

    @property
    def is_work(self) -> bool:
        """Whether this stands in the list of work: for annotators always, for others once they have rated."""
        return self.rater is not None


def list_todos(user: User) -> list[ProjectTodo]:
    """Every project of this person that is not archived, by name."""
    mine = Membership.objects.of(user).exclude(project__state=ProjectState.ARCHIVED).order_by("project__name")
    memberships = list(mine.select_related("project__guideline").defer("project__guideline__body"))
    raters = {rater.project_id: rater for rater in Rater.objects.active().filter(user=user)}
    waiting = _count_waiting([rater.pk for rater in raters.values()])
    empty = [pk for pk, n in waiting.items() if not n]
    why = queue.explain_nothing_left(empty) if empty else {}
    usual = _median_times(list(raters))
    found = [
        ProjectTodo(each, rater, waiting.get(rater.pk, 0), str(why.get(rater.pk, "")), usual.get(each.project_id))
        if (rater := raters.get(each.project_id))
        else ProjectTodo(each, None, 0)
        for each in memberships
    ]
    return sorted(found, key=lambda each: not each.can_begin)  # by name within each half


def find_opened_assignment(user: User, now: dt.datetime) -> Assignment | None:
    """What this person was in the middle of, if it is still kept for them."""
    mine = Assignment.objects.opened().filter(rater__user=user, rater__removed_at=None, lease_ends_at__gt=now)
    return mine.select_related("trace__problem", "project").order_by("-opened_at").first()


class StepMark(NamedTuple):
    """One step of a trace that is being rated, as a track shows it."""

    rating: int | None
    is_next: bool


def list_step_marks(assignment: Assignment) -> list[StepMark]:
    """How far a person has come in a trace."""
    mine = Judgment.objects.filter(
        turn__assignment=assignment, turn__revision=assignment.revision, turn__step=OuterRef("pk"), option__position=0
    )
    steps = Step.objects.filter(trace=assignment.trace_id, is_rateable=True).order_by("position")
    ratings = list(steps.annotate(said=Subquery(mine.values("rating")[:1])).values_list("said", flat=True))
    following = ratings.index(None) if None in ratings else None
    return [StepMark(rating, number == following) for number, rating in enumerate(ratings)]


def _median_times(projects: Collection[int]) -> dict[int, dt.timedelta]:
    """The median."""
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
