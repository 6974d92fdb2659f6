"""Tokens with which programs act for a person. Alone writes ApiToken rows."""

import datetime as dt
from collections.abc import Collection

from django.db.models import Q, QuerySet

from accounts import secret_tokens
from accounts.models import ApiToken, User

PREFIX = "stepmark_"  # scanners for leaked secrets look for such words
USE_RECORDED_EVERY = dt.timedelta(hours=1)  # a write for each call would cost more than the call


def create_token(
    *, user: User, name: str, scopes: Collection[str], lasts: dt.timedelta | None, now: dt.datetime
) -> tuple[ApiToken, str]:
    """The row, and the secret, which is shown this once."""
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
    """The token behind the secret, if it still works; notes now and then that it is used."""
    token = active_tokens(now=now).select_related("user").filter(token_digest=secret_tokens.hash_token(secret)).first()
    if token and (token.used_at is None or token.used_at < now - USE_RECORDED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(used_at=now)
    return token


def revoke_token(*, token: ApiToken, now: dt.datetime) -> None:
    """It stops working at once. The row stays: it says what a program could do, and until when."""
    ApiToken.objects.filter(pk=token.pk, withdrawn_at=None).update(withdrawn_at=now)


def list_tokens(user: User) -> QuerySet[ApiToken]:
    """Those that were not withdrawn, the newest first; one that expired says so."""
    return ApiToken.objects.filter(user=user, withdrawn_at=None).order_by("-pk")
