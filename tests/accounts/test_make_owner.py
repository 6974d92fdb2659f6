"""The first account of an empty platform."""

from io import StringIO
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from people import roles

pytestmark = pytest.mark.django_db


def test_make_owner_prints_a_link_that_logs_in_somebody_who_may_create_projects(client: Client) -> None:
    said = StringIO()
    call_command("make_owner", "ada", origin="http://testserver", stdout=said)
    assert roles.may_create_projects(User.objects.get(username="ada"))
    client.post(urlsplit(said.getvalue().strip()).path)
    assert client.session["_auth_user_id"] == str(User.objects.get(username="ada").pk)


def test_make_owner_says_how_to_let_in_somebody_who_has_an_account() -> None:
    call_command("make_owner", "ada", stdout=StringIO())
    with pytest.raises(CommandError, match="login_link ada"):
        call_command("make_owner", "ada")
