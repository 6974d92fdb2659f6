"""Links that let a person in once: to log in, or to set a new password. Alone writes LoginLink rows."""

import datetime as dt

from django.db.models import QuerySet

from accounts import secret_tokens
from accounts.models import LinkPurpose, LoginLink, User

LOGIN_LINK_LIFETIME = dt.timedelta(minutes=15)
PASSWORD_LINK_LIFETIME = dt.timedelta(days=3)


class LoginLinkInvalid(Exception):
    """The link was used, withdrawn or is too old, or it never was one. Which of these is nobody's business."""


def create_login_link(
    *, user: User, by: User | None, now: dt.datetime, lasts: dt.timedelta = LOGIN_LINK_LIFETIME
) -> str:
    """The token of a link that logs `user` in. `by` is None where the operator of the machine makes it."""
    return _create_link(user, LinkPurpose.LOGIN, by, now, lasts)


def create_password_link(
    *, user: User, by: User | None, now: dt.datetime, lasts: dt.timedelta = PASSWORD_LINK_LIFETIME
) -> str:
    """The token of a link with which `user` sets a new password. An earlier one stops working: the newest counts."""
    revoke_links(user=user, purpose=LinkPurpose.NEW_PASSWORD, now=now)
    return _create_link(user, LinkPurpose.NEW_PASSWORD, by, now, lasts)


def find_link(*, token: str, purpose: LinkPurpose, now: dt.datetime) -> LoginLink | None:
    """The link, if it still works. Looking does not use it up: previews of messages look too."""
    return _active_links(token, purpose, now).select_related("user").first()


def use_link(*, token: str, purpose: LinkPurpose, now: dt.datetime) -> User:
    """Use the link up and say whom it lets in. Of several that spend it at once, one succeeds."""
    link = find_link(token=token, purpose=purpose, now=now)
    # Checked again by the one statement that writes, on the columns of the row alone: PostgreSQL looks at those anew
    # after it has waited for the row, but not at a subquery, into which a join would turn.
    if link is None or not LoginLink.objects.filter(pk=link.pk, used_at=None, withdrawn_at=None).update(used_at=now):
        raise LoginLinkInvalid
    return link.user


def revoke_links(*, user: User, now: dt.datetime, purpose: LinkPurpose | None = None) -> int:
    """Make the links of `user` that still work useless; says how many there were."""
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
