"""The command that creates the first account."""

from io import StringIO
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from people import roles

pytestmark = pytest.mark.django_db


def test_make_owner_prints_a_login_link_of_a_user_who_may_create_projects(client: Client) -> None:
    said = StringIO()
    call_command("make_owner", "ada", origin="http://testserver", stdout=said)
    assert roles.may_create_projects(User.objects.get(username="ada"))
    client.post(urlsplit(said.getvalue().strip()).path)
    assert client.session["_auth_user_id"] == str(User.objects.get(username="ada").pk)


def test_make_owner_names_the_command_for_an_existing_user() -> None:
    call_command("make_owner", "ada", stdout=StringIO())
    with pytest.raises(CommandError, match="login_link ada"):
        call_command("make_owner", "ada")
