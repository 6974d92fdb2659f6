"""Assignments of traces to raters, and their submissions. `labeling.queue` owns slots and states until the submission,
`labeling.assignments` owns submissions."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models.project import Guideline, Project
from labeling.models.queue import Lane, TraceDraw
from labeling.models.rater import Rater
from labeling.models.trace import Trace


class AssignmentPurpose(models.TextChoices):
    WORK = "work", _("work")
    TRAINING = "training", _("training")
    SCREENING = "screening", _("screening")
    GOLD = "gold", _("gold")
    ADJUDICATION = "adjudication", _("adjudication")


class AssignmentState(models.TextChoices):
    HELD = "held", _("held")
    OPENED = "opened", _("opened")
    SUBMITTED = "submitted", _("submitted")
    RELEASED = "released", _("released")
    LAPSED = "lapsed", _("lapsed")


class AssignmentOrigin(models.TextChoices):
    HERE = "here", _("made here")
    IMPORTED = "imported", _("imported")


class Population(models.TextChoices):
    """Which statistics include a submission. The headline includes only scheduled ones."""

    SCHEDULED = "scheduled", _("scheduled")
    OPINION = "opinion", _("further label")  # requested because raters disagreed
    EXTRA = "extra", _("extra")  # submitted late without a free slot


class FinishReason(models.TextChoices):
    SOLUTION = "solution", _("all steps rated")
    FOUND_ERROR = "found_error", _("found an error")
    GIVE_UP = "give_up", _("gave up")
    BAD_PROBLEM = "bad_problem", _("bad problem")


OPEN_STATES = (AssignmentState.HELD, AssignmentState.OPENED)


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    def open(self) -> "AssignmentQuerySet":
        """Those assigned to a rater now: held or opened."""
        return self.filter(state__in=OPEN_STATES)

    def opened(self) -> "AssignmentQuerySet":
        return self.filter(state=AssignmentState.OPENED)

    def held(self) -> "AssignmentQuerySet":
        """Those that were prefetched and not opened yet."""
        return self.filter(state=AssignmentState.HELD)

    def submitted(self) -> "AssignmentQuerySet":
        return self.filter(state=AssignmentState.SUBMITTED)


class Assignment(models.Model):
    """One trace, assigned to one rater for one purpose."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    trace = models.ForeignKey(Trace, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    lane = models.ForeignKey(Lane, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    lane_key = models.BigIntegerField(null=True, blank=True)  # of its queue entry: the rater continues below it
    draw = models.ForeignKey(TraceDraw, null=True, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    purpose = models.CharField(max_length=12, choices=AssignmentPurpose, default=AssignmentPurpose.WORK)
    attempt = models.PositiveIntegerField(default=1)
    origin = models.CharField(max_length=8, choices=AssignmentOrigin, default=AssignmentOrigin.HERE)
    population = models.CharField(max_length=10, choices=Population, default=Population.SCHEDULED)
    state = models.CharField(max_length=10, choices=AssignmentState)
    holds_slot = models.BooleanField(default=False)

    held_at = models.DateTimeField(null=True, blank=True)
    opened_at = models.DateTimeField(null=True, blank=True)
    lease_ends_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    reopened_at = models.DateTimeField(
        null=True, blank=True
    )  # since then it is being corrected; the last submission counts
    ended_at = models.DateTimeField(null=True, blank=True)  # released or lapsed
    ended_reason = models.CharField(max_length=300, blank=True)
    # The rater had it open when it ended, and has not acknowledged the notice yet.
    is_end_news = models.BooleanField(default=False, db_default=False)
    finish_reason = models.CharField(max_length=32, null=True, blank=True)

    # The guideline, and what the rater could see, at the time of opening.
    guideline = models.ForeignKey(Guideline, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    saw_reference_answer = models.BooleanField(null=True, blank=True)
    saw_final_verdict = models.BooleanField(null=True, blank=True)
    is_assisted = models.BooleanField(default=False)  # saw the scores of a PRM before rating

    revision = models.PositiveSmallIntegerField(default=1)  # the one that the rater edits
    submitted_revision = models.PositiveSmallIntegerField(default=0)  # the one that counts; 0 for none
    version = models.PositiveIntegerField(default=0)  # grows by one with each batch of edits

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["trace", "rater", "purpose", "attempt"],
                name="a_rater_gets_a_trace_once_per_purpose_and_attempt",
            ),
            models.UniqueConstraint(
                fields=["rater", "trace"],
                condition=Q(state__in=["held", "opened"]),
                name="one_open_assignment_per_rater_and_trace",
            ),
            models.UniqueConstraint(fields=["rater"], condition=Q(state="held"), name="one_held_assignment_per_rater"),
            models.CheckConstraint(
                condition=Q(origin="imported")
                | Q(state="submitted", submitted_at__isnull=False, finish_reason__isnull=False)
                | ~Q(state="submitted") & Q(submitted_at=None, finish_reason=None),
                name="work_done_here_is_submitted_with_a_time_and_a_reason",
            ),
            models.CheckConstraint(
                condition=~Q(origin="imported") | Q(state="submitted"), name="what_is_imported_is_submitted"
            ),
            models.CheckConstraint(
                condition=Q(state="submitted", submitted_revision__gte=1)
                | ~Q(state="submitted") & Q(submitted_revision=0),
                name="what_is_submitted_has_a_revision",
            ),
            models.CheckConstraint(
                condition=Q(submitted_revision__lte=F("revision")), name="the_submitted_revision_was_worked_on"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["held", "opened"]) | Q(lease_ends_at__isnull=False, holds_slot=True),
                name="an_open_assignment_has_a_lease_and_a_slot",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["released", "lapsed"]) | Q(ended_at__isnull=False, holds_slot=False),
                name="what_ended_gave_its_slot_back",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["project", "lease_ends_at"],
                condition=Q(state__in=["held", "opened"]),
                name="assignment_by_lease",
            ),
            # The newest of each lane: whether it is held, and the position of its rater.
            models.Index(fields=["rater", "lane", "-held_at", "-id"], name="assignment_newest"),
            models.Index(fields=["project"], condition=Q(reopened_at__isnull=False), name="assignment_reopened"),
            models.Index(
                fields=["rater"],
                condition=Q(is_end_news=True, state__in=["released", "lapsed"]),
                name="assignment_end_news",
            ),
            models.Index(
                fields=["project", "submitted_at"], condition=Q(state="submitted"), name="assignment_submitted"
            ),
        ]

    def __str__(self) -> str:
        return f"assignment {self.pk}"


class Submission(models.Model):
    """One immutable submitted revision of an assignment. Its step reviews have the same revision number."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="submissions", db_index=False)
    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="submissions", db_index=False)
    revision = models.PositiveSmallIntegerField(default=1)
    submitted_at = models.DateTimeField(null=True, blank=True)
    finish_reason = models.CharField(max_length=32, null=True, blank=True)
    finish_note = models.TextField(blank=True)
    total_ms = models.BigIntegerField(null=True, blank=True)
    generation = models.IntegerField(null=True, blank=True)
    is_quality_control = models.BooleanField(null=True, blank=True)
    is_screening = models.BooleanField(null=True, blank=True)

    # Imported ones: the record of the file, and its bytes if the columns cannot reproduce them.
    record_digest = models.CharField(max_length=64, null=True, blank=True)
    record_occurrence = models.PositiveIntegerField(null=True, blank=True)
    residue = models.BinaryField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "revision"], name="a_revision_is_submitted_once"),
            models.UniqueConstraint(
                fields=["project", "record_digest", "record_occurrence"], name="a_record_is_imported_once"
            ),
        ]

    def __str__(self) -> str:
        return f"submission {self.assignment_id}.{self.revision}"
