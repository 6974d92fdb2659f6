"""A user's submissions, newest first, with their results. Read-only; every page takes the same number of queries."""

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from labeling import raters
from labeling.assignments import find_open_requests, reopen_refusal_reason
from labeling.models import Assignment, Judgment, Option, StepReview, Submission, VisibilityDraw
from labeling.models.assignment import AssignmentOrigin, AssignmentQuerySet, FinishReason
from labeling.projects import rating_rules, visibility

PAGE_SIZE = 25
SCAN_LIMIT = 200  # assignments read for one page; some of them were skipped, lapsed or reclaimed
NEGATIVE = -1


@dataclass(frozen=True)
class HistoryEntry:
    """A submitted trace with its latest submission."""

    assignment: Assignment
    submission: Submission
    ratings: Sequence[int]  # one per rated step, alternatives left out
    may_correct: bool

    @property
    def active(self) -> dt.timedelta:
        return dt.timedelta(milliseconds=self.submission.total_ms or 0)

    @property
    def is_negative(self) -> bool:
        return self.submission.finish_reason == FinishReason.FOUND_ERROR

    @property
    def is_clean(self) -> bool:
        return self.submission.finish_reason == FinishReason.SOLUTION and NEGATIVE not in self.ratings

    @property
    def result(self) -> str:
        reason, n = self.submission.finish_reason, len(self.ratings)
        if reason == FinishReason.FOUND_ERROR:
            return _("First error at step %(step)d") % {"step": n}
        if reason in (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM):
            label = _("Gave up") if reason == FinishReason.GIVE_UP else _("Problem reported")
            return f"{label}: {self.submission.finish_note}" if self.submission.finish_note else label
        negative = self.ratings.count(NEGATIVE)
        if not negative:
            return ngettext("No error in %(n)d step", "No error in %(n)d steps", n) % {"n": n}
        steps = ngettext("%(n)d step rated", "%(n)d steps rated", n) % {"n": n}
        return _("%(steps)s, %(negative)d negative") % {"steps": steps, "negative": negative}


class HistoryPage(NamedTuple):
    rows: Sequence[HistoryEntry]
    older: int | None  # the next page starts below this key


def load_page(user: User, *, now: dt.datetime, before: int | None = None, size: int = PAGE_SIZE) -> HistoryPage:
    """Return a page of the user's submissions, in six queries."""
    newest = _newest_assignment_ids(user, before)
    submitted = own_assignments(user).submitted().filter(pk__in=newest)
    rows = list(submitted.select_related("trace__problem", "project", "rater").order_by("-pk")[: size + 1])
    shown = rows[:size]
    last = shown[-1].pk if len(rows) > size else newest[-1] if len(newest) == SCAN_LIMIT else None
    return HistoryPage(build_entries(shown, now), last)


def _newest_assignment_ids(user: User, before: int | None) -> list[int]:
    """Return the user's newest assignments, in any state, from the index on raters.

    PostgreSQL assumes that a rater's rows are spread evenly over the table. To find the newest few it would walk down
    the primary key, through the whole table for a new rater. Ordering by an expression prevents that plan."""
    rows = Assignment.objects.filter(rater__in=raters.list_rater_ids(user_id=user.pk))
    rows = rows if before is None else rows.filter(pk__lt=before)
    return list(rows.order_by((F("pk") + 0).desc()).values_list("pk", flat=True)[:SCAN_LIMIT])


def own_assignments(user: User) -> AssignmentQuerySet:
    return Assignment.objects.filter(rater__user=user, origin=AssignmentOrigin.HERE)


def build_entries(assignments: Sequence[Assignment], now: dt.datetime) -> list[HistoryEntry]:
    submissions = {
        each.assignment_id: each
        for each in Submission.objects.filter(assignment__in=assignments, revision=F("assignment__submitted_revision"))
    }
    ratings, requested = _own_step_ratings(assignments), find_open_requests(assignments=assignments)
    return [
        HistoryEntry(
            each,
            submissions[each.pk],
            ratings[each.pk],
            may_correct=not reopen_refusal_reason(assignment=each, now=now, is_asked=each.pk in requested),
        )
        for each in assignments
    ]


def _own_step_ratings(assignments: Sequence[Assignment]) -> dict[int, list[int]]:
    rows = Judgment.objects.filter(
        turn__assignment__in=assignments,
        turn__revision=F("turn__assignment__submitted_revision"),
        option__position=0,
        rating__isnull=False,
    )
    ratings: dict[int, list[int]] = defaultdict(list)
    for assignment, rating in rows.order_by("turn__step__position").values_list("turn__assignment", "rating"):
        ratings[assignment].append(rating or 0)
    return ratings


class SubmittedOption(NamedTuple):
    """An option of a submitted trace. `judgment` is None for context and for unrated steps."""

    number: str  # an alternative: its letter
    option: Option
    judgment: Judgment | None
    review: StepReview | None  # the comment and the corrected step; alternatives have none
    category: str  # label of the error category
    severity: str = ""  # its name
    evidence: Sequence[str] = ()  # quotes of the step
    clauses: Sequence[str] = ()  # that the rating cites


def list_options(assignment: Assignment) -> list[SubmittedOption]:
    """Return the submitted trace: all steps, and the alternatives that were rated."""
    judgments = {
        each.option_id: each
        for each in Judgment.objects.filter(
            turn__assignment=assignment, turn__revision=assignment.submitted_revision
        ).select_related("turn")
    }
    options = Option.objects.filter(step__trace=assignment.trace_id).select_related("step")
    condition = VisibilityDraw.objects.filter(assignment=assignment).values_list("condition", flat=True).first()
    submitted, number, labels = [], 0, rating_rules.kind_names(assignment.project)
    severities = rating_rules.name_severities(assignment.project)
    for option in visibility.list_visible(options.order_by("step__position", "position"), condition):
        judgment = judgments.get(option.pk)
        number += option.step.is_rateable and option.position == 0
        if option.position and judgment is None:
            continue
        name = chr(ord("A") + option.position - 1) if option.position else str(number)
        submitted.append(
            SubmittedOption(
                name if option.step.is_rateable else "",
                option,
                judgment,
                review=judgment.turn if judgment and not option.position else None,
                category=rating_rules.name_category(judgment.category, labels) if judgment else "",
                evidence=[quote["text"] for quote in (judgment.evidence if judgment else None) or ()],
                clauses=[cited["clause"] for cited in (judgment.citations if judgment else None) or ()],
                severity=severities.get((judgment.severity if judgment else None) or 0, ""),
            )
        )
    return submitted
