"""What was worked on each day. Owned by `labeling.quality`."""

from typing import ClassVar

from django.db import models

from labeling.models.project import Project
from labeling.models.rater import Rater


class WorkDay(models.Model):
    """What one rater submitted first on one day, and the active time of it, corrections included. Kept so that what a
    project has cost since its beginning is told without going through all of it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="work_days", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    readings = models.PositiveIntegerField()  # of work
    active_ms = models.BigIntegerField()  # of work
    paid_ms = models.BigIntegerField()  # of gold, training and screening too

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "day", "rater"], name="a_rater_has_a_work_day_once"),
            models.CheckConstraint(
                condition=models.Q(active_ms__gte=0, paid_ms__gte=models.F("active_ms")), name="all_work_is_paid"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} on {self.day}"
