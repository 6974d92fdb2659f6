"""Ratings: the step reviews of an assignment, their judgments, and the history of edits. Owned by
`labeling.assignments`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models.assignment import Assignment
from labeling.models.trace import Option, Step


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
    active_ms = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "revision", "step"], name="a_step_has_one_turn_a_revision"),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk}"


class Judgment(models.Model):
    """One rating of one option, with its flag, as part of a step review."""

    turn = models.ForeignKey(StepReview, on_delete=models.CASCADE, related_name="judgments", db_index=False)
    option = models.ForeignKey(Option, on_delete=models.PROTECT, related_name="judgments")
    rating = models.SmallIntegerField(null=True, blank=True)
    flagged = models.BooleanField(null=True, blank=True)
    category = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
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
        ]

    def __str__(self) -> str:
        return f"{self.rating} for {self.option_id}"


class RatingEditKind(models.TextChoices):
    RATE = "rate", _("rated")
    UNDO = "undo", _("undid")
    CHOOSE = "choose", _("chose an option")
    WRITE_STEP = "write_step", _("wrote a step")
    COMMENT = "comment", _("commented")


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
    step = models.PositiveIntegerField()  # position
    option = models.PositiveSmallIntegerField(null=True, blank=True)  # position
    rating = models.SmallIntegerField(null=True, blank=True)
    flagged = models.BooleanField(null=True, blank=True)
    category = models.CharField(max_length=40, blank=True)
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
    revision = models.PositiveSmallIntegerField()  # that the request is about
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
