"""Who belongs to a project, and how they get in. Memberships belong to `people.members`, invitations to
`people.invitations`, worker ids of crowd platforms to `people.workers`."""

import datetime as dt
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User


class Role(models.TextChoices):
    OWNER = "owner", _("owner")
    LEAD = "lead", _("lead")
    REVIEWER = "reviewer", _("reviewer")
    ENGINEER = "engineer", _("engineer")
    ANNOTATOR = "annotator", _("annotator")


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Every page starts here: at the person who asks."""

    def active(self) -> "MembershipQuerySet":
        return self.filter(left_at=None)

    def of(self, user: User) -> "MembershipQuerySet":
        """Where this person belongs today, with the project in the same query."""
        return self.active().filter(user=user).select_related("project")


class Membership(models.Model):
    """One role of one person in one project. Somebody who left keeps the row, so that a label keeps its source."""

    project = models.ForeignKey(
        "labeling.Project", on_delete=models.CASCADE, related_name="memberships", db_index=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    joined_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True, blank=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "user"], name="a_person_has_one_role_in_a_project"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.role}"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self, now: dt.datetime) -> "InvitationQuerySet":
        """Those that still let somebody in."""
        return self.filter(uses__lt=F("uses_allowed"), expires_at__gt=now, revoked_at=None)


class Invitation(models.Model):
    """A link into a project. Only its hash is kept: whoever reads the database cannot use it."""

    project = models.ForeignKey("labeling.Project", on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role)
    token_digest = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=100, blank=True)  # for whom it was made, in the lead's words
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    uses_allowed = models.PositiveIntegerField(default=1)
    uses = models.PositiveIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(uses__lte=F("uses_allowed")), name="an_invitation_is_not_used_up_twice"),
            models.CheckConstraint(condition=Q(uses_allowed__gte=1), name="an_invitation_lets_somebody_in"),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("made_at")), name="an_invitation_expires_after_it_was_made"
            ),
            models.CheckConstraint(condition=~Q(role="owner"), name="nobody_is_invited_as_owner"),
        ]

    def __str__(self) -> str:
        return f"invitation {self.pk}"


class WorkerId(models.Model):
    """Who a rater from a crowd platform is there. It leads back to the same account; datasets and the log never carry
    it, and it goes when the person is erased."""

    project = models.ForeignKey("labeling.Project", on_delete=models.CASCADE, related_name="worker_ids", db_index=False)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="worker_id")
    worker = models.CharField(max_length=64)
    study = models.CharField(max_length=64, blank=True)  # of the latest visit, as the platform names it
    session = models.CharField(max_length=64, blank=True)
    first_came_at = models.DateTimeField()
    last_came_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "worker"], name="a_worker_id_is_one_person_in_a_project"),
        ]

    def __str__(self) -> str:
        return f"worker id of {self.user_id}"
