"""Raters of a project: people, machines and imported labelers. Owned by `labeling.raters`; onboarding by
`labeling.onboarding`, and work days by `labeling.quality`."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models.project import ConsentText, Guideline, Project


class RaterKind(models.TextChoices):
    MEMBER = "member", _("member")
    IMPORTED = "imported", _("imported labeler")
    MACHINE = "machine", _("machine")
    UNKNOWN = "unknown", _("unknown")


PEOPLE = (RaterKind.MEMBER, RaterKind.IMPORTED, RaterKind.UNKNOWN)  # labels from files are by people unless stated


class RaterStage(models.TextChoices):
    """The onboarding stage of a rater. New consent texts and guidelines come first at every stage."""

    TRAINING = "training", _("training")
    LESSON = "lesson", _("training feedback")
    SCREENING = "screening", _("screening")
    RETRY = "retry", _("another screening attempt")
    WORKING = "working", _("working")
    FAILED = "failed", _("screening not passed")


class RaterQuerySet(models.QuerySet["Rater"]):
    def active(self) -> "RaterQuerySet":
        """Return the raters who have not been removed from their project. They may be paused."""
        return self.filter(removed_at=None)

    def members(self) -> "RaterQuerySet":
        """Return the people of the project, without machines and imported labelers."""
        return self.filter(kind=RaterKind.MEMBER)


class Rater(models.Model):
    """A member, an imported labeler, a machine of a named kind, or the project's unknown rater."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="raters")
    kind = models.CharField(max_length=8, choices=RaterKind, default=RaterKind.MEMBER)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="raters"
    )
    # A random pseudonym, or the name of an imported labeler in its file. If it is a pseudonym, datasets contain it.
    # Otherwise they contain `pseudonym`, unless a lead chose to export names.
    labeler = models.CharField(max_length=100, null=True, blank=True)
    pseudonym = models.UUIDField(default=uuid.uuid4, editable=False)
    machine = models.CharField(max_length=200, blank=True)  # "judge gpt-x, prompt 3", "monte carlo, 16 rollouts"
    stage = models.CharField(max_length=12, choices=RaterStage, default=RaterStage.WORKING)
    training_attempt = models.PositiveSmallIntegerField(default=1)
    screening_attempt = models.PositiveSmallIntegerField(default=1)
    # The latest versions that this rater has read and agreed to. The models of onboarding have the times.
    read_guideline = models.ForeignKey(
        Guideline, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    agreed_text = models.ForeignKey(
        ConsentText, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    is_paused_by_check = models.BooleanField(default=False)  # paused by a check, not by a person
    paused_reason = models.CharField(max_length=300, blank=True)  # shown to the rater
    paused_note = models.CharField(max_length=300, blank=True)  # shown only to leads
    # The pause that a check has decided on, until it takes effect: see `labeling.raters.schedule_pause`.
    pending_pause = models.JSONField(null=True, blank=True)
    watched_since_at = models.DateTimeField(null=True, blank=True)  # gold answers before this time do not count
    proven_at = models.DateTimeField(null=True, blank=True)  # when the rater became trusted, and so gets less gold
    removed_at = models.DateTimeField(null=True, blank=True)
    added_at = models.DateTimeField()

    objects = RaterQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "labeler"], name="a_pseudonym_stands_for_one_rater"),
            models.UniqueConstraint(
                fields=["project", "user"], condition=Q(user__isnull=False), name="a_user_is_one_rater_in_a_project"
            ),
            models.UniqueConstraint(
                fields=["project"], condition=Q(kind="unknown"), name="a_project_has_one_unknown_rater"
            ),
            models.UniqueConstraint(
                fields=["project", "machine"], condition=Q(kind="machine"), name="a_machine_is_one_rater_in_a_project"
            ),
            models.CheckConstraint(condition=Q(kind="member") | Q(user__isnull=True), name="only_members_have_a_user"),
            models.CheckConstraint(
                condition=Q(paused_at__isnull=False) | Q(is_paused_by_check=False), name="a_check_pauses_at_some_time"
            ),
            models.CheckConstraint(
                condition=Q(kind="unknown", labeler=None) | (~Q(kind="unknown") & Q(labeler__isnull=False)),
                name="everybody_but_the_unknown_rater_has_a_pseudonym",
            ),
            models.CheckConstraint(
                condition=Q(kind="machine") & ~Q(machine="") | ~Q(kind="machine") & Q(machine=""),
                name="a_machine_says_what_it_is",
            ),
        ]

    def __str__(self) -> str:
        return self.labeler or "unknown"


class Consent(models.Model):
    """A rater agreed to one version of the project's text."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="consents", db_index=False)
    text = models.ForeignKey(ConsentText, on_delete=models.PROTECT, related_name="consents")
    given_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "text"], name="a_rater_agrees_to_a_text_once"),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} agreed to {self.text_id}"


class GuidelineAcknowledgment(models.Model):
    """A rater confirmed having read one version of the guideline."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="readings", db_index=False)
    guideline = models.ForeignKey(Guideline, on_delete=models.PROTECT, related_name="readings")
    read_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "guideline"], name="a_rater_reads_a_guideline_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} read {self.guideline_id}"


class TrainingFeedback(models.Model):
    """The feedback on one training trace, and whether its rater has read it."""

    assignment = models.OneToOneField("labeling.Assignment", on_delete=models.PROTECT, related_name="lesson")
    given_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(read_at=None) | Q(read_at__gte=F("given_at")), name="a_lesson_is_read_after_it_was_given"
            ),
        ]

    def __str__(self) -> str:
        return f"feedback on {self.assignment_id}"


class ScreeningResult(models.Model):
    """The result of one screening attempt, with the pass mark at that time."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="screening_results", db_index=False)
    attempt = models.PositiveSmallIntegerField()
    n_traces = models.PositiveIntegerField()
    n_right = models.PositiveIntegerField()
    n_needed = models.PositiveIntegerField()
    has_passed = models.BooleanField()
    decided_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "attempt"], name="an_attempt_at_the_screening_ends_once"),
            models.CheckConstraint(
                condition=Q(n_right__lte=F("n_traces"), n_needed__lte=F("n_traces"), attempt__gte=1),
                name="a_screening_counts_its_own_traces",
            ),
            models.CheckConstraint(
                condition=Q(has_passed=True, n_right__gte=F("n_needed"))
                | Q(has_passed=False, n_right__lt=F("n_needed")),
                name="a_screening_is_passed_by_its_mark",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.rater_id}"


class WorkDay(models.Model):
    """The first submissions of one rater on one day, and their active time including corrections. Stored so that the
    cost of a project does not need all submissions."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="work_days", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    readings = models.PositiveIntegerField()  # of work
    active_ms = models.BigIntegerField()  # of work
    paid_ms = models.BigIntegerField()  # including gold, training and screening

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "day", "rater"], name="a_rater_has_a_work_day_once"),
            models.CheckConstraint(condition=Q(active_ms__gte=0, paid_ms__gte=F("active_ms")), name="all_work_is_paid"),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} on {self.day}"
