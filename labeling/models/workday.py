"""Work per rater and day. Owned by `labeling.quality`."""

from typing import ClassVar

from django.db import models

from labeling.models.project import Project
from labeling.models.rater import Rater


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
            models.CheckConstraint(
                condition=models.Q(active_ms__gte=0, paid_ms__gte=models.F("active_ms")), name="all_work_is_paid"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} on {self.day}"
