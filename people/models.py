"""Memberships, invitations, worker IDs and messages.

They are written by `people.members`, `people.invitations`, `people.crowd_workers` and `people.member_messages`."""

import datetime as dt
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from labeling.models import Project


class Role(models.TextChoices):
    OWNER = "owner", _("owner")
    LEAD = "lead", _("lead")
    REVIEWER = "reviewer", _("reviewer")
    ENGINEER = "engineer", _("engineer")
    VIEWER = "viewer", _("viewer")
    ANNOTATOR = "annotator", _("annotator")


class MembershipQuerySet(models.QuerySet["Membership"]):
    def active(self) -> "MembershipQuerySet":
        return self.filter(left_at=None)

    def of(self, user: User) -> "MembershipQuerySet":
        """Return the user's current memberships with their projects."""
        return self.active().filter(user=user).select_related("project")


class Membership(models.Model):
    """A user's role in a project. The row is kept when they leave, because labels refer to it."""

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
        """Return invitations that are not used up, revoked or expired.

        `invitations.open_invitations` also checks the inviter."""
        return self.filter(uses__lt=F("uses_allowed"), expires_at__gt=now, revoked_at=None)


class Invitation(models.Model):
    """A link into a project. Only its hash is stored, so a copy of the database cannot be used to join."""

    project = models.ForeignKey("labeling.Project", on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role)
    token_digest = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=100, blank=True)  # the lead's note on the recipient
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
    """The ID of a rater on their crowd platform, with which they return to their account.

    It is never part of datasets or the log, and is deleted when the user is erased."""

    project = models.ForeignKey("labeling.Project", on_delete=models.CASCADE, related_name="worker_ids", db_index=False)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="worker_id")
    worker = models.CharField(max_length=64)
    study = models.CharField(max_length=64, blank=True)  # the platform's ID, from the latest visit
    session = models.CharField(max_length=64, blank=True)
    first_came_at = models.DateTimeField()
    last_came_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "worker"], name="a_worker_id_is_one_person_in_a_project"),
        ]

    def __str__(self) -> str:
        return f"worker id of {self.user_id}"


class WorkerDevice(models.Model):
    """A browser from which a worker ID came. The first is released at once, every other one by a lead.

    Only the digest of its secret is stored; the secret is a cookie of that browser."""

    worker = models.ForeignKey(WorkerId, on_delete=models.CASCADE, related_name="devices", db_index=False)
    digest = models.CharField(max_length=64, db_index=True)
    came_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True, blank=True)
    released_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["worker", "digest"], name="a_device_of_a_worker_is_known_once"),
        ]

    def __str__(self) -> str:
        return f"device {self.pk}"


class MemberMessageQuerySet(models.QuerySet["MemberMessage"]):
    def to_members(self) -> "MemberMessageQuerySet":
        return self.filter(kind=MessageKind.MESSAGE)

    def to_leads(self) -> "MemberMessageQuerySet":
        """Return questions and disputes of members."""
        return self.exclude(kind=MessageKind.MESSAGE)

    def unread_by(self, user: User) -> "MemberMessageQuerySet":
        """Return the user's unread messages in their current projects, oldest first."""
        unread = self.to_members().filter(read_at=None, membership__user=user, membership__left_at=None)
        return unread.select_related("written_by", "membership__project").order_by("pk")

    def unread_in(self, project: Project, user: User) -> "MemberMessage | None":
        """Return the oldest unread message; the work page shows one at a time."""
        return self.unread_by(user).filter(membership__project=project).first()

    def with_new_answer(self, project_id: int) -> "MemberMessageQuerySet":
        return self.filter(answered_at__isnull=False, answer_seen_at=None, membership__project=project_id)

    def open_questions(self, project_id: int) -> "MemberMessageQuerySet":
        """Return questions and disputes that no lead has answered or marked as read."""
        return self.to_leads().filter(read_at=None, membership__project=project_id)

    def about(self, trace_id: int) -> "MemberMessageQuerySet":
        """Return the messages about a trace, oldest first."""
        rows = self.filter(trace=trace_id).select_related("written_by", "membership__user")
        return rows.order_by("pk")


class MessageKind(models.TextChoices):
    MESSAGE = "message", _("message from a lead")
    QUESTION = "question", _("question")
    DISPUTE = "dispute", _("disagreement with a training answer")


class MemberMessage(models.Model):
    """A message between the leads and one member.

    A lead's message has the member's reply of one line. A question or dispute comes from the member and is about a
    trace; leads answer it with a message about the same step. The messages about one step are one conversation.

    The log never contains the text, so that it can be deleted when the user is erased."""

    membership = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="messages")
    kind = models.CharField(max_length=8, choices=MessageKind, default=MessageKind.MESSAGE)
    trace = models.ForeignKey("labeling.Trace", null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    step = models.PositiveIntegerField(null=True, blank=True)  # position; null: about the whole trace
    step_number = models.PositiveIntegerField(null=True, blank=True)  # of the step, as people count
    text = models.TextField()
    written_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    written_at = models.DateTimeField()
    is_to_all = models.BooleanField(default=False)  # sent to all raters; each has their own row
    read_at = models.DateTimeField(null=True, blank=True)  # by the member; a question: by any lead
    answer = models.CharField(max_length=500, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    answer_seen_at = models.DateTimeField(null=True, blank=True)  # by any lead

    objects = MemberMessageQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(text=""), name="a_message_says_something"),
            models.CheckConstraint(
                condition=Q(answered_at=None, answer="") | Q(answered_at__isnull=False) & ~Q(answer=""),
                name="an_answer_says_something_and_when",
            ),
            models.CheckConstraint(
                condition=Q(answered_at=None) | Q(read_at__isnull=False), name="what_is_answered_was_read"
            ),
            models.CheckConstraint(
                condition=Q(answer_seen_at=None) | Q(answered_at__isnull=False), name="an_answer_is_there_to_be_seen"
            ),
            models.CheckConstraint(
                condition=Q(kind="message") | Q(trace__isnull=False, answer=""), name="a_question_is_about_a_trace"
            ),
            models.CheckConstraint(condition=Q(step=None) | Q(trace__isnull=False), name="a_step_is_in_a_trace"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["membership"], condition=Q(read_at=None), name="message_unread"),
            models.Index(
                fields=["membership"],
                condition=Q(answered_at__isnull=False, answer_seen_at=None),
                name="message_with_new_answer",
            ),
        ]

    def __str__(self) -> str:
        return f"message {self.pk}"

    @property
    def has_new_answer(self) -> bool:
        return self.answered_at is not None and self.answer_seen_at is None

    @property
    def is_from_member(self) -> bool:
        return self.kind != MessageKind.MESSAGE

    @property
    def is_open_question(self) -> bool:
        return self.is_from_member and self.read_at is None
