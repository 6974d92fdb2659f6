"""A backup cannot be used to log in, and a restore does not revive revoked access."""

import logging
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
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
from tests import factories
from tests.factories import NOW
from tests.labeling.quality import submitted_work
from tests.people.personas import make_personas
from tests.privacy.rows_of_person import list_tables_with, read_figures

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


@contextmanager
def written_log(file: Path) -> Iterator[None]:
    """Write the lines of all loggers into a file, as the platform does."""
    file.parent.mkdir()
    options = dict(django_settings.LOGGING["formatters"]["lines"])
    handler = logging.FileHandler(file)
    handler.setFormatter(options.pop("()")(**options))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()


def search_files(folder: Path, words: tuple[str, ...]) -> list[str]:
    """Return the names of files with one of the words, in any case. An archive is a file like others."""
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(word.encode() in path.read_bytes().lower() for word in words)
    ]


def test_an_erased_person_is_in_no_table_file_and_log_line(tmp_path: Path, settings: Settings) -> None:
    """Neither after the erasure, nor after the restore of a backup with the person. Figures are the same each time."""
    settings.DATA_DIR, settings.REVOCATIONS_FILE = tmp_path, tmp_path / "revocations.jsonl"
    words = ("quark-77", "quincy", "quark.example", "strange")
    project = submitted_work.project_with_two_submissions()
    project.pay_per_hour = Decimal(20)
    project.save()
    rater = project.raters.earliest("pk")
    project.work_days.create(rater=rater, day=NOW.date(), readings=4, active_ms=3_000_000, paid_ms=3_600_000)
    person = rater.user
    assert person
    done = factories.make_submitted(rater, factories.make_trace(project))
    factories.make_judgment(done, rating=-1, reason="strange", comment="A strange quark.")
    file = tmp_path / "stepmark.backup"
    with written_log(tmp_path / "logs" / "web.log"):
        client = Client()
        client.force_login(person)
        client.post(reverse("change_details"), {"name": "Quincy Quark", "email": "q@quark.example"})
        Client().post(reverse("account_login"), {"login": "q@quark.example", "password": "strange words"})
        client.get(reverse("annotate:home"), {"q": "quincy"}, headers={"User-Agent": "strange"})
        client.get("/not-there/", {"q": "quincy"})
    User.objects.filter(pk=person.pk).update(username="quark-77")
    before = read_figures(project, NOW)
    assert list_tables_with("quark")
    backup.create_backup(file=file, now=NOW)
    erasure.erase_person(user=User.objects.get(pk=person.pk), by=None, now=NOW)
    for _ in range(2):
        assert {word: list_tables_with(word) for word in words} == {word: {} for word in words}
        assert read_figures(project, NOW) == before
        backup.restore_backup(file=file, now=NOW)
    file.unlink()
    assert search_files(tmp_path, words) == []
    assert "request_finished" in (tmp_path / "logs" / "web.log").read_text()
