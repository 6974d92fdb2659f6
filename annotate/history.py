"""What a person has submitted, newest first, with what they found. Reads alone; a page costs the same everywhere."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from annotate import client_strings
from labeling import assignments as labeling_assignments
from labeling import raters
from labeling.models import Assignment, Judgment, Option, Submission
from labeling.models.assignment import AssignmentOrigin, AssignmentQuerySet, FinishReason

PAGE_SIZE = 25
SCAN_LIMIT = 200  # for one page: what was skipped, lapsed or went back is among it
NEGATIVE = -1


@dataclass(frozen=True)
class HistoryEntry:
    """One trace that was submitted, by its latest submission."""

    assignment: Assignment
    submission: Submission
    ratings: Sequence[int]  # of the steps themselves, in their order
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
    def found(self) -> str:
        reason, n = self.submission.finish_reason, len(self.ratings)
        if reason == FinishReason.FOUND_ERROR:
            return _("First error, step %(step)d") % {"step": n}
        if reason in (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM):
            said = _("Gave up") if reason == FinishReason.GIVE_UP else _("Bad problem")
            return f"{said}: {self.submission.finish_note}" if self.submission.finish_note else said
        negative = self.ratings.count(NEGATIVE)
        if not negative:
            return ngettext("No error, %(n)d step", "No error, %(n)d steps", n) % {"n": n}
        steps = ngettext("%(n)d step rated", "%(n)d steps rated", n) % {"n": n}
        return _("%(steps)s, %(negative)d negative") % {"steps": steps, "negative": negative}


class HistoryPage(NamedTuple):
    rows: Sequence[HistoryEntry]
    older: int | None  # the key that the next page begins below


def load_page(user: User, *, now: dt.datetime, before: int | None = None, size: int = PAGE_SIZE) -> HistoryPage:
    """Submitted traces of this person, six queries a page."""
    newest = _newest_assignment_ids(user, before)
    rows = own_assignments(user).submitted().filter(pk__in=newest)
    found = list(rows.select_related("trace__problem", "project", "rater").order_by("-pk")[: size + 1])
    shown = found[:size]
    last = shown[-1].pk if len(found) > size else newest[-1] if len(newest) == SCAN_LIMIT else None
    return HistoryPage(list(_build_entries(shown, now)), last)


def _newest_assignment_ids(user: User, before: int | None) -> list[int]:
    """What was handed to this person last, whatever became of it: found in an index that holds nothing else of it.

    PostgreSQL takes anybody's rows to lie everywhere in their table. Asked for the newest few that are submitted it
    goes down the whole table by its key, through everybody's, for whoever has just come. A sum is in no index."""
    rows = Assignment.objects.filter(rater__in=raters.list_rater_ids(user_id=user.pk))
    rows = rows if before is None else rows.filter(pk__lt=before)
    return list(rows.order_by((F("pk") + 0).desc()).values_list("pk", flat=True)[:SCAN_LIMIT])


def own_assignments(user: User) -> AssignmentQuerySet:
    return Assignment.objects.filter(rater__user=user, origin=AssignmentOrigin.HERE)


def load_entry(assignment: Assignment, now: dt.datetime) -> HistoryEntry:
    return next(iter(_build_entries([assignment], now)))


def _build_entries(assignments: Sequence[Assignment], now: dt.datetime) -> Iterable[HistoryEntry]:
    submissions = {
        each.assignment_id: each
        for each in Submission.objects.filter(assignment__in=assignments, revision=F("assignment__submitted_revision"))
    }
    ratings, asked = _own_step_ratings(assignments), labeling_assignments.find_open_requests(assignments=assignments)
    for assignment in assignments:
        yield HistoryEntry(
            assignment,
            submissions[assignment.pk],
            ratings[assignment.pk],
            may_correct=not labeling_assignments.reopen_refusal_reason(
                assignment=assignment, now=now, is_asked=assignment.pk in asked
            ),
        )


def _own_step_ratings(assignments: Sequence[Assignment]) -> dict[int, list[int]]:
    rows = Judgment.objects.filter(
        turn__assignment__in=assignments,
        turn__revision=F("turn__assignment__submitted_revision"),
        option__position=0,
        rating__isnull=False,
    )
    found: dict[int, list[int]] = defaultdict(list)
    for assignment, rating in rows.order_by("turn__step__position").values_list("turn__assignment", "rating"):
        found[assignment].append(rating or 0)
    return found


class SubmittedOption(NamedTuple):
    """One option of a submitted trace. Context and options that were not rated have no rating."""

    number: str
    option: Option
    judgment: Judgment | None
    comment: str
    corrected: str  # the step as it should read
    category: str  # in words


def list_options(assignment: Assignment) -> list[SubmittedOption]:
    """The whole trace as it was submitted; of the alternatives those that were rated."""
    judged = {
        each.option_id: each
        for each in Judgment.objects.filter(
            turn__assignment=assignment, turn__revision=assignment.submitted_revision
        ).select_related("turn")
    }
    options = Option.objects.filter(step__trace=assignment.trace_id).select_related("step").prefetch_related("parts")
    told, number = [], 0
    for option in options.order_by("step__position", "position"):
        judgment = judged.get(option.pk)
        number += option.step.is_rateable and option.position == 0
        if option.position and judgment is None:
            continue
        name = f"{number}.{option.position}" if option.position else str(number)
        told.append(
            SubmittedOption(
                name if option.step.is_rateable else "", option, judgment, *_written_notes(judgment, option)
            )
        )
    return told


def _written_notes(judgment: Judgment | None, option: Option) -> tuple[str, str, str]:
    """What was written about a step: comment, correction, kind of error."""
    if judgment is None:
        return "", "", ""
    category = dict(client_strings.error_categories()).get(judgment.category, judgment.category)
    if option.position:
        return "", "", category
    return judgment.turn.comment, judgment.turn.written_text or "", category
