"""Secrets that act for a user: single-use links, to log in or to set a new password, and API tokens of programs.

The only module that writes LoginLink and ApiToken rows. Only the hash of a secret is stored."""

import datetime as dt
import hashlib
import secrets
import zlib
from collections.abc import Collection
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts import tasks
from accounts.models import ApiToken, LinkPurpose, LoginLink, User
from accounts.security_log import log_account_event

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CHECKSUM_LENGTH = 6
LOGIN_LINK_LIFETIME = dt.timedelta(minutes=15)
PASSWORD_LINK_LIFETIME = dt.timedelta(days=3)
API_PREFIX = "stepmark_"  # lets secret scanners recognize a leaked token
USE_RECORDED_EVERY = dt.timedelta(hours=1)  # one write per call would cost more than the call


class LoginLinkInvalid(Exception):
    """The link is unknown, used, revoked or expired. Callers do not reveal which."""


def generate_token() -> str:
    """Return 256 random bits as 43 URL-safe characters."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token. No salt or slow hash is needed for 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()


def create_login_link(
    *, user: User, by: User | None, now: dt.datetime, lasts: dt.timedelta = LOGIN_LINK_LIFETIME
) -> str:
    """Return the token of a link that logs `user` in. `by` is None when the operator creates it on the server."""
    return _create_link(user, LinkPurpose.LOGIN, by, now, lasts)


def create_password_link(*, user: User, by: User | None, now: dt.datetime) -> str:
    """Return the token of a link for setting a new password. Earlier password links stop working."""
    revoke_links(user=user, purpose=LinkPurpose.NEW_PASSWORD, now=now)
    transaction.on_commit(partial(tasks.request_account_mail, user=user, what="link_made"))
    return _create_link(user, LinkPurpose.NEW_PASSWORD, by, now, PASSWORD_LINK_LIFETIME)


def _create_link(user: User, purpose: LinkPurpose, by: User | None, now: dt.datetime, lasts: dt.timedelta) -> str:
    token = generate_token()
    with transaction.atomic():
        LoginLink.objects.create(
            user=user, purpose=purpose, token_digest=hash_token(token), made_by=by, made_at=now, expires_at=now + lasts
        )
        log_account_event(what="link_made", user=user, by=by, now=now, purpose=purpose.value)
    return token


def find_link(*, token: str, purpose: LinkPurpose, now: dt.datetime) -> LoginLink:
    """Return the link, without using it up: message previews open links too. Raises LoginLinkInvalid."""
    links = LoginLink.objects.filter(used_at=None, withdrawn_at=None, expires_at__gt=now, user__is_active=True)
    link = links.filter(token_digest=hash_token(token), purpose=purpose).select_related("user").first()
    if link is None:
        raise LoginLinkInvalid
    return link


def use_link(*, token: str, purpose: LinkPurpose, now: dt.datetime) -> User:
    """Use the link up and return its user. Of several concurrent calls, one succeeds. Raises LoginLinkInvalid."""
    link = find_link(token=token, purpose=purpose, now=now)
    # The update repeats the check on columns of the row itself: PostgreSQL rechecks those after waiting for a row lock,
    # but not a subquery, which a join would become.
    with transaction.atomic():
        if not LoginLink.objects.filter(pk=link.pk, used_at=None, withdrawn_at=None).update(used_at=now):
            raise LoginLinkInvalid
        log_account_event(what="link_used", user=link.user, by=link.user, now=now, purpose=purpose.value)
    return link.user


def revoke_links(*, user: User, now: dt.datetime, purpose: LinkPurpose | None = None) -> None:
    """Revoke the unused links of `user`, for one purpose or all."""
    links = LoginLink.objects.filter(user=user, used_at=None, withdrawn_at=None)
    if purpose is not None:
        links = links.filter(purpose=purpose)
    links.update(withdrawn_at=now)


def create_api_token(
    *,
    user: User,
    name: str,
    scopes: Collection[str],
    lasts: dt.timedelta | None,
    now: dt.datetime,
    project_id: int | None = None,
) -> tuple[ApiToken, str]:
    """Return the new token and its secret. It lasts at most as long as the operator allows."""
    secret, maximum = generate_api_secret(), max_token_lifetime()
    lasts = min(lasts or maximum, maximum) if maximum else lasts
    with transaction.atomic():
        row = ApiToken.objects.create(
            user=user,
            name=name,
            scopes=sorted(scopes),
            project=project_id,
            token_digest=hash_token(secret),
            made_at=now,
            expires_at=now + lasts if lasts else None,
        )
        days = lasts.days if lasts else None
        log_account_event(what="token_made", user=user, by=user, now=now, token=row.pk, scopes=row.scopes, days=days)
        transaction.on_commit(partial(tasks.request_token_mail, row.pk))
    return row, secret


def max_token_lifetime() -> dt.timedelta | None:
    return dt.timedelta(days=settings.MAX_TOKEN_DAYS) if settings.MAX_TOKEN_DAYS else None


def generate_api_secret() -> str:
    """Return a secret with a checksum, so that a scanner can tell a token from similar text without asking us."""
    text = API_PREFIX + generate_token()
    return text + _checksum(text)


def has_valid_checksum(secret: str) -> bool:
    text, checksum = secret[:-CHECKSUM_LENGTH], secret[-CHECKSUM_LENGTH:]
    return text.startswith(API_PREFIX) and checksum == _checksum(text)


def _checksum(text: str) -> str:
    """Return the CRC-32 in six digits of base 62, as GitHub's tokens do."""
    number, digits = zlib.crc32(text.encode(errors="replace")), ""
    for _place in range(CHECKSUM_LENGTH):
        number, rest = divmod(number, 62)
        digits = _DIGITS[rest] + digits
    return digits


def find_api_token(*, secret: str, now: dt.datetime) -> ApiToken | None:
    """Return the active token with this secret and update its last-used time, at most once an hour."""
    if not has_valid_checksum(secret):
        return None
    is_current = Q(expires_at=None) | Q(expires_at__gt=now)
    if maximum := max_token_lifetime():  # it may have been lowered since
        is_current &= Q(made_at__gt=now - maximum)
    active = ApiToken.objects.filter(is_current, withdrawn_at=None, user__is_active=True, user__is_worker=False)
    token = active.filter(token_digest=hash_token(secret)).select_related("user").first()
    if token and (token.used_at is None or token.used_at < now - USE_RECORDED_EVERY):
        with transaction.atomic():
            ApiToken.objects.filter(pk=token.pk).update(used_at=now)
            log_account_event(what="token_used", user=token.user, by=token.user, now=now, token=token.pk)
    return token


def revoke_api_token(*, token: ApiToken, by: User | None, now: dt.datetime) -> None:
    """Revoke a token. The row is kept as a record of what the token allowed, and until when."""
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk, withdrawn_at=None).update(withdrawn_at=now):
            log_account_event(what="token_revoked", user=token.user, by=by, now=now, token=token.pk)


def revoke_all_api_tokens(*, user: User, now: dt.datetime) -> None:
    for token in list_api_tokens(user):
        revoke_api_token(token=token, by=user, now=now)


def list_project_tokens(*, project_id: int, user_ids: Collection[int], now: dt.datetime) -> QuerySet[ApiToken]:
    """Return the valid tokens with which programs of these users can reach a project, newest first."""
    rows = ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), withdrawn_at=None, user__in=user_ids)
    return rows.filter(Q(project=None) | Q(project=project_id)).select_related("user").order_by("-pk")


def list_api_tokens(user: User) -> QuerySet[ApiToken]:
    """Return a user's tokens, newest first: expired ones included, revoked ones left out."""
    return ApiToken.objects.filter(user=user, withdrawn_at=None).order_by("-pk")
