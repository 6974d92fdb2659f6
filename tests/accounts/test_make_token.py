"""The command that prints an API token."""

import datetime as dt
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import tokens
from tests import factories

pytestmark = pytest.mark.django_db


def test_make_token_prints_a_token_with_these_scopes() -> None:
    user, said = factories.make_user(), StringIO()
    call_command("make_token", user.username, "read", "score", "--days", "2", stdout=said)
    token = tokens.find_api_token(secret=said.getvalue().strip(), now=timezone.now())
    assert token is not None
    assert (token.user, token.scopes) == (user, ["read", "score"])
    late = timezone.now() + dt.timedelta(days=3)
    assert tokens.find_api_token(secret=said.getvalue().strip(), now=late) is None


@pytest.mark.parametrize("words", [("nobody", "read"), ("ada", "everything"), ("ada", "read", "--days", "0")])
def test_make_token_refuses(words: tuple[str, ...]) -> None:
    factories.make_user("ada")
    with pytest.raises(CommandError):
        call_command("make_token", *words, stdout=StringIO())
