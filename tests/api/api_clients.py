"""A program with a token."""

from typing import Any

from django.test import Client
from django.utils import timezone

from accounts import api_tokens
from accounts.models import Scope, User


def make_client(user: User, *scopes: str) -> Client:
    """A client that shows a token of this person; with every scope, unless some are named."""
    chosen = scopes or tuple(Scope)
    _, secret = api_tokens.create_token(user=user, name="program", scopes=chosen, lasts=None, now=timezone.now())
    return Client(headers={"Authorization": f"Bearer {secret}"})


def problem_detail(response: Any) -> str:
    """What a refusal says; it is one."""
    assert response["Content-Type"] == "application/problem+json"
    told = response.json()
    assert told["status"] == response.status_code
    return str(told["detail"])
