"""Labels that a lead has set aside. Owned by `labeling.quality.set_aside`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from labeling.models.project import Project
from labeling.models.rater import Rater
from labeling.models.trace import Trace


class SetAside(models.Model):
    """A decision that submissions of one rater do not count: those in a period of time, or a single one. The row is
    never deleted, but the decision can be undone.

    A job marks the submissions: see `Assignment.set_aside`.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="set_asides", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="set_asides")
    assignment = models.ForeignKey(  # null for all submissions of the time
        "labeling.Assignment", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    # Times of submission, both inclusive. A null `since_at` includes imported submissions without a time.
    since_at = models.DateTimeField(null=True, blank=True)
    until_at = models.DateTimeField()
    reason = models.CharField(max_length=300)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(since_at=None) | Q(since_at__lte=F("until_at")), name="a_set_aside_begins_before_it_ends"
            ),
            models.CheckConstraint(
                condition=Q(undone_at=None) | Q(undone_at__gte=F("made_at")),
                name="a_set_aside_is_undone_after_it_was_made",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "-made_at"], name="set_aside_newest")]

    def __str__(self) -> str:
        return f"set aside {self.pk} of {self.rater_id}"


class EarlierSettlement(models.Model):
    """The settlement of a trace before any of its labels were set aside. The row exists while some are set aside."""

    trace = models.OneToOneField(Trace, primary_key=True, on_delete=models.CASCADE, related_name="earlier_settlement")
    state = models.CharField(max_length=10)
    reason = models.CharField(max_length=40, blank=True)
    n_readings = models.PositiveSmallIntegerField()
    n_votes = models.PositiveSmallIntegerField()
    differs_at = models.PositiveIntegerField(null=True, blank=True)
    consensus_revision = models.PositiveIntegerField()
    changed_at = models.DateTimeField()
    n_slots = models.PositiveIntegerField()  # labels that were scheduled from the start
    saved_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.trace_id} was {self.state}"
