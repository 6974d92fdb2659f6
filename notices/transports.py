"""Send one notice: as a signed POST request to a webhook, or as an email to a member."""

import datetime as dt
import json
import smtplib
from email.utils import formatdate
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils.translation import gettext as _

import outbound
from notices import kinds, subscriptions
from notices.models import Notice, NoticeDelivery

TIMEOUT_SECONDS = 10.0
_MAX_ANSWER_BYTES = 64 << 10


class NotDelivered(Exception):
    """The attempt failed. The message is for the delivery log; `is_final`: another attempt would fail, too."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


def send_notice(delivery: NoticeDelivery, *, now: dt.datetime) -> None:
    """Send the notice. Raise NotDelivered unless the receiver accepted it."""
    if delivery.webhook is not None:
        _post_notice(delivery, now)
    else:
        _mail_notice(delivery, now)


def write_body(notice: Notice) -> bytes:
    """Return the body of the request. It is the same for every attempt."""
    return json.dumps({"id": notice.pk, **notice.content}, ensure_ascii=False).encode()


def _post_notice(delivery: NoticeDelivery, now: dt.datetime) -> None:
    webhook, notice = delivery.webhook, delivery.notice
    assert webhook is not None
    if webhook.deleted_at is not None:
        raise NotDelivered(_("The webhook was deleted."), is_final=True)
    body = write_body(notice)
    headers = outbound.sign_request(body, subscriptions.derive_secret(webhook), at=int(now.timestamp()))
    headers |= {"X-Stepmark-Event": notice.kind, "User-Agent": f"Stepmark/{settings.CODE_VERSION}"}
    try:
        response = outbound.post(webhook.address, body, headers, timeout=TIMEOUT_SECONDS, max_bytes=_MAX_ANSWER_BYTES)
    except (outbound.AddressRefused, outbound.RequestFailed) as error:
        raise NotDelivered(str(error)) from None
    if not 200 <= response.status < 300:
        raise NotDelivered(_("The server responded with status %(status)d.") % {"status": response.status})


def _mail_notice(delivery: NoticeDelivery, now: dt.datetime) -> None:
    membership, content = delivery.membership, delivery.notice.content
    assert membership is not None
    if membership not in subscriptions.list_receivers_of(delivery.notice) or not subscriptions.can_send_mail():
        raise NotDelivered(_("The member no longer gets this notice."), is_final=True)
    project = " ".join(content["project"]["name"].split())
    if membership == subscriptions.find_corrector(content):
        lines = _write_to_corrector(project)
    else:
        lines = _write_to_lead(project, content)
    host = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip(">")
    message = EmailMessage(
        subject=f"[{project}] {kinds.label_kind(delivery.notice.kind)}",
        body="\n\n".join(lines) + "\n",
        to=[membership.user.email],
        headers={"Message-ID": f"<notice-{delivery.pk}@{host}>", "Date": formatdate(now.timestamp())},
    )
    try:
        message.send()
    except (smtplib.SMTPException, OSError) as error:
        raise NotDelivered(f"{type(error).__name__} {error}"[:300]) from None


def _write_to_lead(project: str, content: dict[str, Any]) -> list[str]:
    choices = settings.ORIGIN + reverse("dashboard:notices", args=[content["project"]["slug"]])
    choice = _(
        "You are receiving this email because you chose to be notified about the project “%(project)s”. Change"
        " your notice settings: %(url)s"
    )
    return [kinds.write_text(content), content["url"], choice % {"project": project, "url": choices}]


def _write_to_corrector(project: str) -> list[str]:
    """Write to an annotator, who cannot open the pages of leads. The note is on their home page."""
    text = _("Please take another look at one of your submissions in the project “%(project)s”.")
    where = _("Your home page shows which one, and why. You can correct it or leave it unchanged.")
    return [text % {"project": project}, where, settings.ORIGIN + reverse("annotate:home")]
