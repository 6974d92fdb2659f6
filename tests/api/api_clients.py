"""API clients with tokens."""

from typing import Any

from django.test import Client
from django.utils import timezone

from accounts import tokens
from accounts.models import Scope, User


def make_client(user: User, *scopes: str) -> Client:
    """Return a client with a token of this user, by default with every scope."""
    chosen = scopes or tuple(Scope)
    _, secret = tokens.create_api_token(user=user, name="program", scopes=chosen, lasts=None, now=timezone.now())
    return Client(headers={"Authorization": f"Bearer {secret}"})


def problem_detail(response: Any) -> str:
    """Check that the response is a problem document, and return its detail."""
    assert response["Content-Type"] == "application/problem+json"
    told = response.json()
    assert told["status"] == response.status_code
    return str(told["detail"])
