"""The arena: edits with which raters fool a PRM, and blind checks of them. Owned by `prm.arena`."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Project, Rater, Trace
from prm.models.prm import PRM


class Arena(models.Model):
    """Whether the arena of a project is open. Without a row, it never was."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="arena", primary_key=True)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"arena of {self.project_id}"


class ArenaEditState(models.TextChoices):
    FAILED = "failed", _("did not fool the PRM")
    WAITING = "waiting", _("waiting for checks")
    CONFIRMED = "confirmed", _("confirmed: the step is wrong")
    REJECTED = "rejected", _("rejected by the checks")


class ArenaEdit(models.Model):
    """One attempt: a wrong step of a settled trace in other words, and the PRM's belief before and after."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="arena_edits", db_index=False)
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="+")
    position = models.PositiveIntegerField()
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="arena_edits")
    prm = models.ForeignKey(PRM, on_delete=models.PROTECT, related_name="+", db_index=False)
    text = models.TextField()
    reason = models.TextField()  # why the step is still wrong
    n_changed = models.PositiveIntegerField()  # words
    p_right_before = models.FloatField()
    p_right_after = models.FloatField()
    state = models.CharField(max_length=9, choices=ArenaEditState)
    made_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(n_changed__gte=1), name="an_arena_edit_changes_something"),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "state"], name="arena_edits_by_state")]

    def __str__(self) -> str:
        return f"arena edit {self.pk} of {self.rater_id}"


class ArenaAnswer(models.TextChoices):
    WRONG = "wrong", _("The step is wrong")
    RIGHT = "right", _("The step is correct")
    UNCLEAR = "unclear", _("I can’t tell")


class ArenaCheck(models.Model):
    """One step that a rater judges without knowing whether it was edited. Without `edit` it is a control: a step of a
    settled trace, which is wrong if `is_wrong`."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="arena_checks", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="arena_checks")
    edit = models.ForeignKey(ArenaEdit, null=True, on_delete=models.CASCADE, related_name="checks")
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="+")
    position = models.PositiveIntegerField()
    is_wrong = models.BooleanField(null=True, blank=True)  # of controls
    answer = models.CharField(max_length=7, choices=ArenaAnswer, blank=True)
    served_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater"], condition=Q(answer=""), name="a_rater_has_one_open_arena_check"),
            models.UniqueConstraint(
                fields=["rater", "edit"], condition=Q(edit__isnull=False), name="a_rater_checks_an_arena_edit_once"
            ),
            models.CheckConstraint(
                condition=Q(edit=None, is_wrong__isnull=False) | Q(edit__isnull=False, is_wrong=None),
                name="only_controls_have_a_known_answer",
            ),
            models.CheckConstraint(
                condition=Q(answer="", answered_at=None) | ~Q(answer="") & Q(answered_at__isnull=False),
                name="an_answered_arena_check_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"arena check {self.pk} of {self.rater_id}"
