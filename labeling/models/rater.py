"""Raters of a project: people, machines and imported labelers. Owned by `labeling.raters`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models.project import ConsentText, Guideline, Project


class RaterKind(models.TextChoices):
    MEMBER = "member", _("member")
    IMPORTED = "imported", _("imported labeler")
    MACHINE = "machine", _("machine")
    UNKNOWN = "unknown", _("unknown")


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
        """Those who have not been removed from their project. They may be paused."""
        return self.filter(removed_at=None)

    def members(self) -> "RaterQuerySet":
        """People of the project, not labelers of a file or machines."""
        return self.filter(kind=RaterKind.MEMBER)


class Rater(models.Model):
    """A member, an imported labeler, a machine of a named kind, or the project's unknown rater."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="raters")
    kind = models.CharField(max_length=8, choices=RaterKind, default=RaterKind.MEMBER)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="raters"
    )
    # The pseudonym in datasets: never a name or an e-mail address.
    labeler = models.CharField(max_length=100, null=True, blank=True)
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
    paused_reason = models.CharField(max_length=300, blank=True)  # shown to the rater
    paused_note = models.CharField(max_length=300, blank=True)  # shown only to leads
    watched_since_at = models.DateTimeField(null=True, blank=True)  # earlier gold does not count
    proven_at = models.DateTimeField(null=True, blank=True)  # trusted since then: gets less gold
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
