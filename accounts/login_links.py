"""Single-use links, to log in or to set a new password. The only module that writes LoginLink rows."""

import datetime as dt

from django.db.models import QuerySet

from accounts import secret_tokens
from accounts.models import LinkPurpose, LoginLink, User

LOGIN_LINK_LIFETIME = dt.timedelta(minutes=15)
PASSWORD_LINK_LIFETIME = dt.timedelta(days=3)


class LoginLinkInvalid(Exception):
    """The link is unknown, used, revoked or expired. Callers do not reveal which."""


def create_login_link(
    *, user: User, by: User | None, now: dt.datetime, lasts: dt.timedelta = LOGIN_LINK_LIFETIME
) -> str:
    """Return the token of a link that logs `user` in. `by` is None when the operator creates it on the server."""
    return _create_link(user, LinkPurpose.LOGIN, by, now, lasts)


def create_password_link(
    *, user: User, by: User | None, now: dt.datetime, lasts: dt.timedelta = PASSWORD_LINK_LIFETIME
) -> str:
    """Return the token of a link for setting a new password. Earlier password links stop working."""
    revoke_links(user=user, purpose=LinkPurpose.NEW_PASSWORD, now=now)
    return _create_link(user, LinkPurpose.NEW_PASSWORD, by, now, lasts)


def find_link(*, token: str, purpose: LinkPurpose, now: dt.datetime) -> LoginLink | None:
    """Return the link if it is still valid, without using it up: message previews open links too."""
    return _active_links(token, purpose, now).select_related("user").first()


def use_link(*, token: str, purpose: LinkPurpose, now: dt.datetime) -> User:
    """Use the link up and return its user. Of several concurrent calls, one succeeds."""
    link = find_link(token=token, purpose=purpose, now=now)
    # The update repeats the check on columns of the row itself: PostgreSQL rechecks those after waiting for a row lock,
    # but not a subquery, which a join would become.
    if link is None or not LoginLink.objects.filter(pk=link.pk, used_at=None, withdrawn_at=None).update(used_at=now):
        raise LoginLinkInvalid
    return link.user


def revoke_links(*, user: User, now: dt.datetime, purpose: LinkPurpose | None = None) -> int:
    """Revoke the unused links of `user` and return how many there were."""
    links = LoginLink.objects.filter(user=user, used_at=None, withdrawn_at=None)
    if purpose is not None:
        links = links.filter(purpose=purpose)
    return links.update(withdrawn_at=now)


def _create_link(user: User, purpose: LinkPurpose, by: User | None, now: dt.datetime, lasts: dt.timedelta) -> str:
    token = secret_tokens.generate_token()
    LoginLink.objects.create(
        user=user,
        purpose=purpose,
        token_digest=secret_tokens.hash_token(token),
        made_by=by,
        made_at=now,
        expires_at=now + lasts,
    )
    return token


def _active_links(token: str, purpose: LinkPurpose, now: dt.datetime) -> QuerySet[LoginLink]:
    return LoginLink.objects.filter(
        token_digest=secret_tokens.hash_token(token),
        purpose=purpose,
        expires_at__gt=now,
        used_at=None,
        withdrawn_at=None,
        user__is_active=True,
    )
