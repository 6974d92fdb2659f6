"""API tokens, with which programs act for a user. The only module that writes ApiToken rows."""

import datetime as dt
from collections.abc import Collection

from django.db.models import Q, QuerySet

from accounts import secret_tokens
from accounts.models import ApiToken, User

PREFIX = "stepmark_"  # lets secret scanners recognize a leaked token
USE_RECORDED_EVERY = dt.timedelta(hours=1)  # one write per call would cost more than the call


def create_token(
    *, user: User, name: str, scopes: Collection[str], lasts: dt.timedelta | None, now: dt.datetime
) -> tuple[ApiToken, str]:
    """Return the new token and its secret. Only the hash of the secret is stored."""
    secret = PREFIX + secret_tokens.generate_token()
    row = ApiToken.objects.create(
        user=user,
        name=name,
        scopes=sorted(scopes),
        token_digest=secret_tokens.hash_token(secret),
        made_at=now,
        expires_at=now + lasts if lasts else None,
    )
    return row, secret


def active_tokens(*, now: dt.datetime) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), withdrawn_at=None, user__is_active=True)


def find_token(*, secret: str, now: dt.datetime) -> ApiToken | None:
    """Return the active token with this secret and update its last-used time, at most once an hour."""
    token = active_tokens(now=now).select_related("user").filter(token_digest=secret_tokens.hash_token(secret)).first()
    if token and (token.used_at is None or token.used_at < now - USE_RECORDED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(used_at=now)
    return token


def revoke_token(*, token: ApiToken, now: dt.datetime) -> None:
    """Revoke a token. The row is kept as a record of what the token allowed, and until when."""
    ApiToken.objects.filter(pk=token.pk, withdrawn_at=None).update(withdrawn_at=now)


def list_tokens(user: User) -> QuerySet[ApiToken]:
    """Return a user's tokens, newest first: expired ones included, revoked ones left out."""
    return ApiToken.objects.filter(user=user, withdrawn_at=None).order_by("-pk")
