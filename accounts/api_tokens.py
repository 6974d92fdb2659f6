"""Tokens with which programs act for a person. Alone writes ApiToken rows."""

import datetime as dt
from collections.abc import Collection

from django.db.models import Q, QuerySet

from accounts import tokens
from accounts.models import ApiToken, User

PREFIX = "stepmark_"  # scanners for leaked secrets look for such words
NOTED_EVERY = dt.timedelta(hours=1)  # a write for each call would cost more than the call


def make(
    *, user: User, name: str, scopes: Collection[str], lasts: dt.timedelta | None, now: dt.datetime
) -> tuple[ApiToken, str]:
    """The row, and the secret, which is shown this once."""
    secret = PREFIX + tokens.fresh()
    row = ApiToken.objects.create(
        user=user,
        name=name,
        scopes=sorted(scopes),
        token_digest=tokens.digest(secret),
        made_at=now,
        expires_at=now + lasts if lasts else None,
    )
    return row, secret


def working(*, now: dt.datetime) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), withdrawn_at=None, user__is_active=True)


def find(*, secret: str, now: dt.datetime) -> ApiToken | None:
    """The token behind the secret, if it still works; notes now and then that it is used."""
    token = working(now=now).select_related("user").filter(token_digest=tokens.digest(secret)).first()
    if token and (token.used_at is None or token.used_at < now - NOTED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(used_at=now)
    return token


def withdraw(*, token: ApiToken, now: dt.datetime) -> None:
    """It stops working at once. The row stays: it says what a program could do, and until when."""
    ApiToken.objects.filter(pk=token.pk, withdrawn_at=None).update(withdrawn_at=now)


def of(user: User) -> QuerySet[ApiToken]:
    """Those that were not withdrawn, the newest first; one that expired says so."""
    return ApiToken.objects.filter(user=user, withdrawn_at=None).order_by("-pk")
