"""Links that let a person in once: to log in, or to set a new password. Alone writes LoginLink rows."""

import datetime as dt

from django.db.models import QuerySet

from accounts import tokens
from accounts.models import LinkPurpose, LoginLink, User

LOGIN_LASTS = dt.timedelta(minutes=15)
NEW_PASSWORD_LASTS = dt.timedelta(days=3)


class LinkIsSpent(Exception):
    """The link was used, withdrawn or is too old, or it never was one. Which of these is nobody's business."""


def make_login(*, user: User, by: User | None, now: dt.datetime, lasts: dt.timedelta = LOGIN_LASTS) -> str:
    """The token of a link that logs `user` in. `by` is None where the operator of the machine makes it."""
    return _make(user, LinkPurpose.LOGIN, by, now, lasts)


def make_new_password(
    *, user: User, by: User | None, now: dt.datetime, lasts: dt.timedelta = NEW_PASSWORD_LASTS
) -> str:
    """The token of a link with which `user` sets a new password. An earlier one stops working: the newest counts."""
    withdraw(user=user, purpose=LinkPurpose.NEW_PASSWORD, now=now)
    return _make(user, LinkPurpose.NEW_PASSWORD, by, now, lasts)


def find(*, token: str, purpose: LinkPurpose, now: dt.datetime) -> LoginLink | None:
    """The link, if it still works. Looking does not use it up: previews of messages look too."""
    return _working(token, purpose, now).select_related("user").first()


def spend(*, token: str, purpose: LinkPurpose, now: dt.datetime) -> User:
    """Use the link up and say whom it lets in. Of several that spend it at once, one succeeds."""
    link = find(token=token, purpose=purpose, now=now)
    # Checked again by the one statement that writes, on the columns of the row alone: PostgreSQL looks at those anew
    # after it has waited for the row, but not at a subquery, into which a join would turn.
    if link is None or not LoginLink.objects.filter(pk=link.pk, used_at=None, withdrawn_at=None).update(used_at=now):
        raise LinkIsSpent
    return link.user


def withdraw(*, user: User, now: dt.datetime, purpose: LinkPurpose | None = None) -> int:
    """Make the links of `user` that still work useless; says how many there were."""
    links = LoginLink.objects.filter(user=user, used_at=None, withdrawn_at=None)
    if purpose is not None:
        links = links.filter(purpose=purpose)
    return links.update(withdrawn_at=now)


def _make(user: User, purpose: LinkPurpose, by: User | None, now: dt.datetime, lasts: dt.timedelta) -> str:
    token = tokens.fresh()
    LoginLink.objects.create(
        user=user,
        purpose=purpose,
        token_digest=tokens.digest(token),
        made_by=by,
        made_at=now,
        expires_at=now + lasts,
    )
    return token


def _working(token: str, purpose: LinkPurpose, now: dt.datetime) -> QuerySet[LoginLink]:
    return LoginLink.objects.filter(
        token_digest=tokens.digest(token),
        purpose=purpose,
        expires_at__gt=now,
        used_at=None,
        withdrawn_at=None,
        user__is_active=True,
    )
