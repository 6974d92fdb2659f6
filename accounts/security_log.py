"""Log what happens to accounts: logins, failures, passwords, links and tokens. The subject is the account.

The typed name is never logged: people type passwords into that field.
"""

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from events import audit_log
from events.models import SECURITY_EVENTS, Event

# An event is streamed when it is this old: events that were logged earlier have been committed by then.
STREAM_DELAY = dt.timedelta(seconds=10)
EVENT_LABELS = {
    "account.created": _("Account created"),
    "account.logged_in": _("Logged in"),
    "account.logged_out": _("Logged out"),
    "account.login_failed": _("Wrong username or password"),
    "account.login_refused": _("Login to an inactive account"),
    "account.locked": _("Too many failed logins"),
    "account.link_made": _("Link created"),
    "account.link_used": _("Link used"),
    "account.password_changed": _("Password changed"),
    "account.password_reset": _("Password reset by link"),
    "account.password_revoked": _("Password revoked after a backup was restored"),
    "account.password_check_failed": _("Wrong current password"),
    "account.confirmed": _("Identity confirmed"),
    "account.confirmation_failed": _("Identity confirmation failed"),
    "account.details_changed": _("Name changed"),
    "account.email_changed": _("Email address changed"),
    "account.factor_added": _("Two-step login: method added"),
    "account.factor_removed": _("Two-step login: method removed"),
    "account.factor_failed": _("Two-step login: wrong code"),
    "account.factors_reset": _("Two-step login reset"),
    "account.recovery_code_used": _("Recovery code used"),
    "account.identity_added": _("Single sign-on connected"),
    "account.identity_removed": _("Single sign-on disconnected"),
    "account.identity_refused": _("Single sign-on login refused"),
    "account.roles_synchronized": _("Roles set from single sign-on groups"),
    "account.sessions_ended": _("Logged out in other browsers"),
    "account.token_made": _("API token created"),
    "account.token_refused": _("Wrong API token"),
    "account.token_revoked": _("API token revoked"),
    "account.token_used": _("API token used"),
}
LOGIN_METHOD_LABELS = {
    "password": _("with the password"),
    "login_link": _("with a login link"),
    "new_password_link": _("with a password link"),
    "invitation": _("with an invitation"),
    "worker_id": _("from a crowd platform"),
    "mfa": _("with a second factor"),
    "totp": _("with an authenticator app"),
    "webauthn": _("with a passkey"),
    "recovery_codes": _("with a recovery code"),
    "socialaccount": _("with single sign-on"),
}


def log_account_event(*, what: str, user: User | None, by: User | None, now: dt.datetime, **detail: Any) -> None:
    """Log an event about an account; without `user`, about a name that no account has."""
    subject = f"user:{user.pk}" if user else ""
    audit_log.log_event(what=f"account.{what}", by=by, now=now, subject=subject, detail=detail)


def list_account_events(user: User) -> QuerySet[Event]:
    """Return what happened to an account, newest first."""
    events = Event.objects.filter(subject=f"user:{user.pk}", what__startswith="account.")
    return events.select_related("origin").order_by("-pk")


def list_security_events() -> QuerySet[Event]:
    """Return the events of the security log: accounts of all people, members, invitations, downloads and snapshots."""
    return Event.objects.filter(what__regex=SECURITY_EVENTS).select_related("origin")


def stream_json_lines(events: QuerySet[Event], *, after: int, now: dt.datetime) -> Iterator[str]:
    """Yield one JSON object per line for each event with a greater id, oldest first."""
    ready = events.filter(pk__gt=after, at__lte=now - STREAM_DELAY)
    for event in ready.order_by("pk").iterator(chunk_size=2000):
        yield json.dumps(describe_event(event)) + "\n"


def describe_event(event: Event) -> dict[str, Any]:
    """Return the event. Its address and browser are empty after their retention time."""
    origin = getattr(event, "origin", None)
    return {
        "id": event.pk,
        "at": event.at.isoformat(),
        "what": event.what,
        "by": event.by,
        "project": event.project,
        "subject": event.subject,
        "detail": event.detail,
        "address": origin and origin.address,
        "browser": origin and origin.browser,
    }


def find_events_of_person(events: QuerySet[Event], name: str) -> QuerySet[Event]:
    """Return the events by or about the account with this username or email address."""
    user = User.objects.filter(Q(username__iexact=name) | ~Q(email="") & Q(email__iexact=name)).first()
    return events.filter(Q(by=user.pk) | Q(subject=f"user:{user.pk}")) if user else events.none()
