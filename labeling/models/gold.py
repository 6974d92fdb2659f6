"""Gold: traces with known answers, and how raters answered them. Written by `labeling.quality`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models.assignment import Assignment
from labeling.models.project import Project
from labeling.models.rater import Rater
from labeling.models.trace import Option, Trace


class GoldUse(models.TextChoices):
    TRAINING = "training", _("training")
    SCREENING = "screening", _("screening")
    HIDDEN = "hidden", _("hidden gold")
    CANARY = "canary", _("canary: evaluates PRMs, never shown")


class GoldQuerySet(models.QuerySet["Gold"]):
    def active(self) -> "GoldQuerySet":
        """Return the gold that is not retired."""
        return self.filter(retired_at=None)


class Gold(models.Model):
    """A trace with a known answer. A submission is right if its first error is in the accepted set."""

    trace = models.ForeignKey(Trace, on_delete=models.PROTECT, related_name="gold")
    use = models.CharField(max_length=10, choices=GoldUse)
    # Step positions; null in the list means "no error".
    accepted_first_errors = models.JSONField()
    explanation = models.TextField(blank=True)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True, blank=True)

    objects = GoldQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["trace", "use"], condition=Q(retired_at=None), name="a_trace_is_gold_once_per_use"
            ),
        ]

    def __str__(self) -> str:
        return f"gold {self.trace_id}"


class GoldRating(models.Model):
    """The known rating of one option of a gold trace, if more is known than the first error."""

    gold = models.ForeignKey(Gold, on_delete=models.CASCADE, related_name="ratings", db_index=False)
    option = models.ForeignKey(Option, on_delete=models.PROTECT, related_name="+")
    rating = models.SmallIntegerField()
    explanation = models.TextField(blank=True)  # shown as training feedback

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["gold", "option"], name="a_gold_option_has_one_rating"),
            models.CheckConstraint(condition=Q(rating__in=[-1, 0, 1]), name="a_gold_rating_is_a_rating"),
        ]

    def __str__(self) -> str:
        return f"{self.rating} for {self.option_id}"


class GoldVerdict(models.TextChoices):
    """A rater's first error compared with the accepted ones. A missed error costs more than a false alarm."""

    RIGHT = "right", _("correct")
    MISSED = "missed", _("missed error")
    BLAMED = "blamed", _("false alarm")
    GAVE_UP = "gave_up", _("gave up")


class GoldAnswerQuerySet(models.QuerySet["GoldAnswer"]):
    def counted(self) -> "GoldAnswerQuerySet":
        """Return the answers that are not set aside."""
        return self.filter(assignment__set_aside=None)


class GoldAnswer(models.Model):
    """The answer of one rater to one gold trace, by the first revision. The highest id is the newest answer."""

    assignment = models.OneToOneField(Assignment, on_delete=models.PROTECT, related_name="gold_answer")
    gold = models.ForeignKey(Gold, on_delete=models.PROTECT, related_name="answers")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="gold_answers", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="gold_answers", db_index=False)
    use = models.CharField(max_length=10, choices=GoldUse)
    attempt = models.PositiveIntegerField(default=1)  # the number of the screening attempt
    # The position of the rater's first error; null for none, or if the rater gave up.
    first_error = models.PositiveIntegerField(null=True, blank=True)
    verdict = models.CharField(max_length=8, choices=GoldVerdict)
    answered_at = models.DateTimeField()

    objects = GoldAnswerQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(verdict="gave_up") | Q(first_error=None), name="who_gave_up_named_no_error"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["rater", "use", "answered_at"], name="gold_answer_of_rater"),
            models.Index(fields=["project", "use", "answered_at"], name="gold_answer_in_project"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} for {self.gold_id}"
