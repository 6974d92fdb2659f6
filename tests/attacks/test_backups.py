"""A backup cannot be used to log in, and a restore does not revive revoked access."""

import tarfile
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts import tokens
from accounts.models import ApiToken, LinkPurpose, LoginLink, Session, User
from events import backup
from events.models import Event
from people import invitations
from people.models import Invitation, Role
from privacy import erasure
from tests.factories import NOW
from tests.people.personas import make_personas

pytestmark = [pytest.mark.fault, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_connections")]


def test_a_backup_is_no_key(tmp_path: Path, settings: Settings) -> None:
    settings.DATA_DIR, settings.REVOCATIONS_FILE = tmp_path, tmp_path / "revocations.jsonl"
    cast, client, file = make_personas(), Client(), tmp_path / "stepmark.backup"
    client.force_login(cast.lead)
    key = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    link = tokens.create_login_link(user=cast.lead, by=None, now=NOW)
    _token, secret = tokens.create_api_token(user=cast.lead, name="loader", scopes=["read"], lasts=None, now=NOW)
    _made, invitation = invitations.create_invitation(project=cast.project, role=Role.LEAD, by=cast.owner, now=NOW)
    backup.create_backup(file=file, now=NOW)
    with tarfile.open(file) as tar:
        part = tar.extractfile("database")
        assert part
        content = part.read()
    for value in (key, link, secret, invitation, tokens.hash_token(link), tokens.hash_token(secret)):
        assert value.encode() not in content
    erasure.erase_person(user=cast.annotator, by=None, now=NOW)
    backup.restore_backup(file=file, now=NOW)
    assert [model.objects.count() for model in (Session, LoginLink, ApiToken, Invitation)] == [0, 0, 0, 0]
    assert client.get(reverse("annotate:home")).status_code == 302
    with pytest.raises(tokens.LoginLinkInvalid):
        tokens.find_link(token=link, purpose=LinkPurpose.LOGIN, now=NOW)
    assert tokens.find_api_token(secret=secret, now=NOW) is None
    assert invitations.find_invitation(token=invitation, now=NOW) is None
    assert User.objects.get(pk=cast.annotator.pk).username == f"erased-{cast.annotator.pk}"
    assert Event.objects.latest("pk").what == "backup.revocations_repeated"


def test_every_table_with_a_secret_digest_is_left_out() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = current_schema()"
            " AND column_name IN ('token_digest', 'session_key')"
        )
        assert {table for (table,) in cursor.fetchall()} <= backup.KEY_TABLES
