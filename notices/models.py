"""Notices of events, and their deliveries by email and webhook.

They are written by `notices.outbox`; webhooks and mail choices by `notices.subscriptions`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Webhook(models.Model):
    """An address that gets the notices of a project. Its secret is derived, not stored: see `subscriptions`."""

    project = models.ForeignKey("labeling.Project", on_delete=models.CASCADE, related_name="webhooks")
    address = models.CharField(max_length=500)
    kinds = models.JSONField(default=list)
    key = models.CharField(max_length=43, unique=True)  # random; the secret is derived from it
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"webhook {self.pk}"


class MailChoice(models.Model):
    """Which notices a member gets by email. Members without a row get none."""

    membership = models.OneToOneField("people.Membership", on_delete=models.CASCADE, related_name="mail_choice")
    kinds = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"mail choice of member {self.membership_id}"


class Notice(models.Model):
    """What happened, as it is sent. A test notice has no event."""

    event = models.OneToOneField("events.Event", null=True, blank=True, on_delete=models.DO_NOTHING, related_name="+")
    project = models.ForeignKey("labeling.Project", on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=60)
    happened_at = models.DateTimeField()
    content = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class NoticeState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    SENT = "sent", _("delivered")
    FAILED = "failed", _("failed")


class NoticeDelivery(models.Model):
    """A notice to one webhook or one member. `next_attempt_at` is also the time when an attempt counts as lost."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    webhook = models.ForeignKey(Webhook, null=True, blank=True, on_delete=models.CASCADE, related_name="deliveries")
    membership = models.ForeignKey(
        "people.Membership", null=True, blank=True, on_delete=models.CASCADE, related_name="notice_deliveries"
    )
    state = models.CharField(max_length=7, choices=NoticeState, default=NoticeState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=300, blank=True)  # of the last attempt
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["notice", "webhook"], name="a_webhook_gets_a_notice_once"),
            models.UniqueConstraint(fields=["notice", "membership"], name="a_member_gets_a_notice_once"),
            models.CheckConstraint(
                condition=Q(webhook=None, membership__isnull=False) | Q(webhook__isnull=False, membership=None),
                name="a_delivery_has_one_receiver",
            ),
            models.CheckConstraint(
                condition=Q(state="waiting", next_attempt_at__isnull=False, ended_at=None)
                | Q(state__in=["sent", "failed"], next_attempt_at=None, ended_at__isnull=False),
                name="only_waiting_deliveries_have_a_next_attempt",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["next_attempt_at"], condition=Q(state="waiting"), name="notice_delivery_due"),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
