"""Assignments of traces to raters, their submissions and ratings. `labeling.queue` owns slots and states until the
submission, `labeling.assignments` owns submissions, step reviews, judgments and edits."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from formats import label_sets
from labeling.models.project import Guideline, Project
from labeling.models.queue import Lane, TraceDraw
from labeling.models.rater import Rater
from labeling.models.set_aside import SetAside
from labeling.models.trace import Option, Source, Step, Trace


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
    OPINION = "opinion", _("additional label")  # requested because raters disagreed
    CHOSEN = "chosen", _("chosen by a person")
    EXTRA = "extra", _("extra")  # submitted late without a free slot


class FinishReason(models.TextChoices):
    SOLUTION = "solution", _("all steps rated")
    FOUND_ERROR = "found_error", _("found an error")
    GIVE_UP = "give_up", _("gave up")
    BAD_PROBLEM = "bad_problem", _("bad problem")


OPEN_STATES = (AssignmentState.HELD, AssignmentState.OPENED)


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    def open(self) -> "AssignmentQuerySet":
        """Return the assignments that raters have now: held or opened."""
        return self.filter(state__in=OPEN_STATES)

    def opened(self) -> "AssignmentQuerySet":
        return self.filter(state=AssignmentState.OPENED)

    def held(self) -> "AssignmentQuerySet":
        """Return the assignments that were prefetched and not opened yet."""
        return self.filter(state=AssignmentState.HELD)

    def submitted(self) -> "AssignmentQuerySet":
        return self.filter(state=AssignmentState.SUBMITTED)

    def counted(self) -> "AssignmentQuerySet":
        """Return the submitted assignments that no lead has set aside."""
        return self.submitted().filter(set_aside=None)


class Assignment(models.Model):
    """One trace, assigned to one rater for one purpose.

    PostgreSQL parses every check of a table for each statement that writes to it, a tenth of the work of a claim. So
    the columns that checks compare are `text`, which needs no conversion, and counters have no check of their own.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    trace = models.ForeignKey(Trace, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    lane = models.ForeignKey(Lane, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    lane_key = models.BigIntegerField(null=True, blank=True)  # the key of its queue entry: the rater continues below it
    draw = models.ForeignKey(TraceDraw, null=True, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    purpose = models.CharField(max_length=12, choices=AssignmentPurpose, default=AssignmentPurpose.WORK)
    attempt = models.IntegerField(default=1)
    origin = models.TextField(choices=AssignmentOrigin, default=AssignmentOrigin.HERE)
    population = models.CharField(max_length=10, choices=Population, default=Population.SCHEDULED)
    state = models.TextField(choices=AssignmentState)
    holds_slot = models.BooleanField(default=False)

    held_at = models.DateTimeField(null=True, blank=True)
    first_held_at = models.DateTimeField(null=True, blank=True)  # earlier, if a trace that was only held is held again
    opened_at = models.DateTimeField(null=True, blank=True)
    lease_ends_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    reopened_at = models.DateTimeField(
        null=True, blank=True
    )  # when the current correction began; the last submission counts
    ended_at = models.DateTimeField(null=True, blank=True)  # released or lapsed
    ended_reason = models.CharField(max_length=300, blank=True)
    # The rater had it open when it ended, and has not acknowledged the notice yet.
    is_end_news = models.BooleanField(default=False, db_default=False)
    finish_reason = models.CharField(max_length=32, null=True, blank=True)
    # The decision of a lead that the submission does not count. It keeps its slot until the trace needs another label.
    set_aside = models.ForeignKey(
        SetAside, null=True, blank=True, on_delete=models.PROTECT, related_name="assignments", db_index=False
    )

    # The guideline, and what the rater could see, at the time of opening.
    guideline = models.ForeignKey(Guideline, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    saw_reference_answer = models.BooleanField(null=True, blank=True)
    saw_final_verdict = models.BooleanField(null=True, blank=True)
    is_assisted = models.BooleanField(default=False)  # sees the labels of a machine: see `Exposure`

    # Since when a submission waits to be counted or scored in the background; null when that is done.
    due_at = models.DateTimeField(null=True, blank=True)
    revision = models.SmallIntegerField(default=1)  # the one that the rater edits
    submitted_revision = models.PositiveSmallIntegerField(default=0)  # the one that counts; 0 for none
    version = models.IntegerField(default=0)  # grows by one with each batch of edits

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
            models.CheckConstraint(
                condition=Q(set_aside=None) | Q(state="submitted"), name="only_submissions_are_set_aside"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["project", "lease_ends_at"],
                condition=Q(state__in=["held", "opened"]),
                name="assignment_by_lease",
            ),
            # For the newest assignment of each lane: whether it is held, and the position of its rater.
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
            models.Index(
                fields=["set_aside", "trace"], condition=Q(set_aside__isnull=False), name="assignment_set_aside"
            ),
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="assignment_due"),
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
    # The protocol that the ratings follow: the project's, or what the file says ("" if it does not).
    protocol = models.CharField(max_length=16, blank=True, db_default="")

    # Of imported submissions: the file, its record, and the record's bytes if the columns cannot reproduce them.
    source = models.ForeignKey(Source, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    record_digest = models.CharField(max_length=64, null=True, blank=True)
    record_occurrence = models.PositiveIntegerField(null=True, blank=True)
    residue = models.BinaryField(null=True, blank=True)

    opened_version: int | None = None  # of the held assignment that the submit opened as well; not a column

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "revision"], name="a_revision_is_submitted_once"),
            models.UniqueConstraint(
                fields=["project", "record_digest", "record_occurrence"], name="a_record_is_imported_once"
            ),
        ]

    def __str__(self) -> str:
        return f"submission {self.assignment_id}.{self.revision}"


class StepReview(models.Model):
    """One step within one revision of one assignment."""

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="turns", db_index=False)
    revision = models.PositiveSmallIntegerField(default=1)
    step = models.ForeignKey(Step, on_delete=models.PROTECT, related_name="turns")
    # Positions of the options in the order shown: "0", "0 2 1"; "" for an empty list, null if not recorded.
    shown = models.TextField(null=True, blank=True)
    chosen = models.PositiveSmallIntegerField(null=True, blank=True)  # place in `shown`
    written_text = models.TextField(null=True, blank=True)  # the rater's own step
    written_rating = models.SmallIntegerField(null=True, blank=True)
    written_flagged = models.BooleanField(null=True, blank=True)
    written_corrected_rating = models.SmallIntegerField(null=True, blank=True)
    comment = models.TextField(blank=True)
    missing = models.TextField(blank=True, db_default="")  # what the trace leaves out after this step
    active_ms = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "revision", "step"], name="a_step_has_one_turn_a_revision"),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk}"


class ErrorLink(models.TextChoices):
    """How a step after an error relates to it, in projects that ask for it. A step without a mark depends on it."""

    RECOVERS = label_sets.RECOVERS, _("recovers from the error")
    INDEPENDENT = label_sets.INDEPENDENT, _("does not depend on the error")


class Severity(models.IntegerChoices):
    """How much an error matters, in projects that ask for it."""

    LOW = 1, _("low")
    MEDIUM = 2, _("medium")
    HIGH = 3, _("high")


class Judgment(models.Model):
    """One rating of one option, with its flag, as part of a step review."""

    turn = models.ForeignKey(StepReview, on_delete=models.CASCADE, related_name="judgments", db_index=False)
    option = models.ForeignKey(Option, on_delete=models.PROTECT, related_name="judgments")
    rating = models.SmallIntegerField(null=True, blank=True)
    flagged = models.BooleanField(null=True, blank=True)
    category = models.CharField(max_length=500, blank=True)  # codes of kinds of errors, separated by spaces
    reason = models.TextField(blank=True)
    error_link = models.CharField(max_length=12, choices=ErrorLink, blank=True, db_default="")
    severity = models.PositiveSmallIntegerField(choices=Severity, null=True, blank=True)
    # Quotes of the option that show the error, as `formats.records.EvidenceRecord` has them; null for none.
    evidence = models.JSONField(null=True, blank=True)
    # Clauses of the guideline that the rating cites, as `formats.records.CitationRecord` has them; null for none.
    citations = models.JSONField(null=True, blank=True)
    # Machine ratings: a value instead of a rating, and the rollouts of its estimate.
    value = models.FloatField(null=True, blank=True)
    rollouts = models.PositiveIntegerField(null=True, blank=True)
    successes = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["turn", "option"], name="one_judgment_per_turn_and_option"),
            models.CheckConstraint(
                condition=Q(rating=None) | Q(rating__in=[-1, 0, 1]), name="a_rating_is_negative_neutral_or_positive"
            ),
            models.CheckConstraint(
                condition=Q(rollouts=None, successes=None) | Q(successes__lte=F("rollouts")),
                name="successes_are_among_the_rollouts",
            ),
            models.CheckConstraint(
                condition=Q(error_link__in=["", *ErrorLink.values]), name="a_link_to_an_error_is_a_known_mark"
            ),
            models.CheckConstraint(
                condition=Q(severity=None) | Q(severity__in=Severity.values), name="a_severity_is_low_medium_or_high"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rating} for {self.option_id}"


class TraceAnswer(models.Model):
    """A rater's answer to a question on the whole trace, within one revision of one assignment."""

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="answers", db_index=False)
    revision = models.PositiveSmallIntegerField(default=1)
    question = models.CharField(max_length=40)  # its code
    value = models.TextField()  # the code of the chosen answer, or a text
    active_ms = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["assignment", "revision", "question"], name="a_question_is_answered_once_a_revision"
            ),
        ]

    def __str__(self) -> str:
        return f"answer to {self.question} of {self.assignment_id}.{self.revision}"


class RatingEditKind(models.TextChoices):
    RATE = "rate", _("rated")
    UNDO = "undo", _("undid")
    CHOOSE = "choose", _("chose an option")
    WRITE_STEP = "write_step", _("wrote a step")
    COMMENT = "comment", _("commented")
    MISSING = "missing", _("noted what is missing")
    ANSWER = "answer", _("answered a question")


class RatingEdit(models.Model):
    """One edit of a client, stored whether or not it was applied. Append-only.

    Each value of a judgment or step review comes from its last applied edit.
    """

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="writes", db_index=False)
    client = models.CharField(max_length=32)
    sequence = models.PositiveIntegerField()
    seen = models.PositiveIntegerField()  # the assignment's version that the client knew
    version = models.PositiveIntegerField()  # the assignment's version after its batch: the order of arrival
    revision = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=12, choices=RatingEditKind)
    step = models.PositiveIntegerField()  # position; 0 for an answer to a question on the whole trace
    option = models.PositiveSmallIntegerField(null=True, blank=True)  # position
    question = models.CharField(max_length=40, blank=True, db_default="")  # the code of a question on the whole trace
    rating = models.SmallIntegerField(null=True, blank=True)
    flagged = models.BooleanField(null=True, blank=True)
    category = models.CharField(max_length=500, blank=True)
    error_link = models.CharField(max_length=12, choices=ErrorLink, blank=True, db_default="")
    severity = models.PositiveSmallIntegerField(choices=Severity, null=True, blank=True)
    evidence = models.JSONField(null=True, blank=True)
    citations = models.JSONField(null=True, blank=True)
    text = models.TextField(blank=True)
    active_ms = models.PositiveIntegerField(default=0)
    made_at = models.DateTimeField(null=True, blank=True)  # by the client's clock
    arrived_at = models.DateTimeField()
    was_late = models.BooleanField(default=False)  # arrived after a submission: stored and shown, not applied
    was_applied = models.BooleanField()  # false for late edits, and those that lost to another edit

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "client", "sequence"], name="a_write_arrives_once"),
            models.CheckConstraint(
                condition=Q(was_late=False) | Q(was_applied=False), name="a_late_write_is_kept_only"
            ),
            models.CheckConstraint(
                condition=~Q(kind__in=["rate", "undo"]) | Q(option__isnull=False), name="a_rating_names_its_option"
            ),
            models.CheckConstraint(
                condition=Q(rating=None) | Q(rating__in=[-1, 0, 1]), name="a_written_rating_is_on_the_scale"
            ),
        ]

    def __str__(self) -> str:
        return f"write {self.client}:{self.sequence}"


class CorrectionRequest(models.Model):
    """A request to the rater of a submission to review it again. The rater corrects it or leaves it unchanged."""

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="correction_requests")
    revision = models.PositiveSmallIntegerField()  # the revision that the request is about
    note = models.TextField()
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, blank=True)
    was_corrected = models.BooleanField(null=True, blank=True)  # false: the rater left it unchanged

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["assignment"], condition=Q(answered_at=None), name="one_open_request_for_an_assignment"
            ),
            models.CheckConstraint(
                condition=Q(answered_at=None, was_corrected=None)
                | Q(answered_at__isnull=False, was_corrected__isnull=False),
                name="an_answered_request_says_what_came_of_it",
            ),
        ]

    def __str__(self) -> str:
        return f"request for {self.assignment_id}.{self.revision}"
