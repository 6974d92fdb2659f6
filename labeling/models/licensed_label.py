"""Labels of licensed machines, and what they settle. Owned by `labeling.quality.licensed_labels`."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models.project import Project
from labeling.models.rater import Rater
from labeling.models.trace import Trace


class LicensedRole(models.TextChoices):
    RETEST = "retest", _("re-test: people label it as usual")
    VOTE = "vote", _("counts as one label")
    SETTLE = "settle", _("settles the trace alone")


class LicensedLabelQuerySet(models.QuerySet["LicensedLabel"]):
    def active(self) -> "LicensedLabelQuerySet":
        """Return the labels that have not been withdrawn."""
        return self.filter(withdrawn_at=None)

    def counting(self) -> "LicensedLabelQuerySet":
        """Return the active labels that may settle their traces: re-tests do not."""
        return self.active().exclude(role=LicensedRole.RETEST)


class LicensedLabel(models.Model):
    """One trace that a license covers, the label of the machine, and the role that was drawn for it.

    If `settled_at` is set, `settled_first_error` is the machine-assisted result. It is never a consensus of people.
    """

    trace = models.OneToOneField(Trace, primary_key=True, on_delete=models.CASCADE, related_name="licensed_label")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="licensed_labels", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="+", db_index=False)
    license = models.BigIntegerField()  # its id; labeling does not depend on machines
    role = models.CharField(max_length=8, choices=LicensedRole)
    retest_probability = models.FloatField()  # with which the trace could have become a re-test
    first_error = models.PositiveIntegerField(null=True, blank=True)  # null for none
    drawn_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    settled_first_error = models.PositiveIntegerField(null=True, blank=True)
    n_people = models.PositiveSmallIntegerField(default=0)  # whose labels the result includes
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = LicensedLabelQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(role="retest") | Q(settled_at=None), name="a_retest_settles_nothing"),
            models.CheckConstraint(
                condition=Q(retest_probability__gt=0, retest_probability__lte=1),
                name="every_licensed_trace_may_be_a_retest",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["license", "role"], name="labels_of_license")]

    def __str__(self) -> str:
        return f"licensed label of {self.trace_id}"
