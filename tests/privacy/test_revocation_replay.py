"""What was revoked since a backup stays revoked when it is restored."""

import datetime as dt
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from pytest_django import Settings

from accounts import factors, single_sign_on, users
from accounts.models import User
from events import revocations
from labeling.models import Rater
from people import members
from people.models import Membership, Role
from privacy import erasure, revocation_replay
from tests import factories
from tests.check_all import BASE
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "seven green ladders"


@pytest.fixture
def file(tmp_path: Path, settings: Settings) -> Path:
    settings.REVOCATIONS_FILE = file = tmp_path / "revocations.jsonl"
    return file


def restore_rows(*rows: User | Membership | Rater, now: dt.datetime, made_at: dt.datetime) -> None:
    """Write rows as they were, as a restore does."""
    for row in rows:
        row.save()
    revocation_replay.repeat_revocations(now=now, made_at=made_at)
    for row in rows:
        row.refresh_from_db()


@pytest.mark.fault
def test_revocations_are_repeated_once(file: Path, now: dt.datetime) -> None:
    cast: Personas = make_personas()
    anna = users.create_user(username="anna", email="anna@example.org", name="Anna Ek", now=now)
    bob = users.create_user(username="bob", password=PASSWORD, now=now)
    removed, lowered = cast.membership(cast.annotator), cast.membership(cast.lead)
    rater = Rater.objects.get(user=cast.annotator)
    before = [User.objects.get(pk=each.pk) for each in (anna, bob)]
    later = now + dt.timedelta(hours=1)
    erasure.erase_person(user=anna, by=None, now=later)
    users.set_password(user=bob, password="eight blue ladders", now=later)
    members.remove_member(membership=cast.membership(cast.annotator), by=cast.owner, now=later)
    members.change_role(membership=cast.membership(cast.lead), role=Role.VIEWER, by=cast.owner, now=later)
    assert "anna" not in file.read_text().lower()

    restore_rows(*before, removed, lowered, rater, now=later, made_at=now)
    assert before[0].erased_at == later
    assert not before[1].has_usable_password()
    assert removed.left_at == later
    assert rater.removed_at == later
    assert lowered.role == Role.VIEWER

    bob.set_password(PASSWORD)  # a backup made after the changes
    restore_rows(bob, cast.membership(cast.lead), now=later, made_at=later + dt.timedelta(seconds=1))
    assert bob.check_password(PASSWORD)


def test_removed_second_factors_do_not_come_back(file: Path, now: dt.datetime) -> None:
    anna, bob = (users.create_user(username=name, password=PASSWORD, now=now) for name in ("anna", "bob"))
    lost = [TOTP.activate(user, generate_totp_secret()).instance for user in (anna, bob)]
    later = now + dt.timedelta(hours=1)
    for user in (anna, bob):
        factors.reset_factors(user=user, by=None, now=later)
    TOTP.activate(bob, generate_totp_secret())  # the backup lacks the new app
    factors.note_removal(user=bob, now=later)
    Authenticator.objects.all().delete()
    Authenticator.objects.bulk_create(lost)
    revocation_replay.repeat_revocations(now=later, made_at=now)
    assert not Authenticator.objects.exists()
    for user in (anna, bob):
        user.refresh_from_db()
    assert anna.has_usable_password()
    assert not bob.has_usable_password()


def test_removed_identities_and_operators_do_not_come_back(file: Path, now: dt.datetime) -> None:
    """Anna disconnected from the provider, Bob is no operator any longer, and Cleo was erased."""
    anna, bob, cleo = (users.create_user(username=name, password=PASSWORD, now=now) for name in ("anna", "bob", "cleo"))
    users.set_operator(user=bob, is_operator=True, now=now)
    for user in (anna, bob, cleo):
        SocialAccount.objects.create(user=user, provider="sso", uid=f"subject of {user.username}")
    before, identities = [User.objects.get(pk=user.pk) for user in (bob, cleo)], list(SocialAccount.objects.all())
    later = now + dt.timedelta(hours=1)
    assert single_sign_on.remove_identity(user=anna, now=later)
    users.set_operator(user=bob, is_operator=False, now=later)
    erasure.erase_person(user=cleo, by=None, now=later)
    SocialAccount.objects.all().delete()
    SocialAccount.objects.bulk_create(identities)
    restore_rows(*before, now=later, made_at=now)
    assert list(SocialAccount.objects.values_list("user", flat=True)) == [bob.pk]
    assert not before[0].is_staff


def test_role_that_groups_lowered_stays_low(file: Path, now: dt.datetime) -> None:
    cast = make_personas()
    before = cast.membership(cast.lead)
    members.set_role_of_groups(project=cast.project, user=cast.lead, role=Role.VIEWER, now=now)
    restore_rows(before, now=now, made_at=now)
    assert before.role == Role.VIEWER


def test_line_after_an_unfinished_one_is_read(file: Path, now: dt.datetime) -> None:
    """A crash cuts off a line; the next one must not be appended to it."""
    revocations.note_revocation(what="password", account="a", now=now)
    file.write_bytes(file.read_bytes() + b'{"what": "passw')
    revocations.note_revocation(what="password", account="b", now=now)
    assert [each["account"] for each in revocations.read_revocations(what="password")] == ["a", "b"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.fault
def test_file_and_folder_are_on_disk_when_a_line_is_noted(file: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    code = (
        "import datetime as dt; from django.conf import settings;"
        f"settings.configure(REVOCATIONS_FILE={str(file)!r});"
        "from events.revocations import note_revocation;"
        "note_revocation(what='password', account='a', now=dt.datetime.now(dt.UTC))"
    )
    hook = tmp_path / "hook.py"
    hook.write_text(
        "import os, sys\n"
        "real = os.fsync\n"
        "def fsync(handle):\n"
        f"    open({str(trace)!r}, 'a').write(os.readlink(f'/proc/self/fd/{{handle}}') + '\\n')\n"
        "    real(handle)\n"
        "os.fsync = fsync\n"
        f"exec({code!r})\n"
    )
    subprocess.run([sys.executable, str(hook)], check=True, cwd=BASE, env={**os.environ, "PYTHONPATH": str(BASE)})
    assert trace.read_text().split() == [str(file), str(file.parent)]


def test_accounts_of_another_platform_are_not_touched(file: Path, now: dt.datetime) -> None:
    anna = factories.make_user("anna", date_joined=now)
    erasure.erase_person(user=anna, by=None, now=now)
    other = User(pk=anna.pk, username="berta", date_joined=now + dt.timedelta(days=1), password="x")
    restore_rows(other, now=now, made_at=now)
    assert (other.username, other.erased_at) == ("berta", None)


def test_a_last_owner_stays(file: Path, now: dt.datetime) -> None:
    """The new owner joined after the backup was made. Without an owner, no one could invite them again."""
    cast, membership = make_personas(), None
    membership = cast.membership(cast.owner)
    heir = members.add_member(project=cast.project, user=cast.stranger, role=Role.OWNER, now=now)
    members.leave_project(membership=cast.membership(cast.owner), now=now)
    heir.delete()
    restore_rows(membership, now=now, made_at=now)
    assert membership.left_at is None


def test_a_file_that_cannot_be_written_stops_an_erasure_but_no_password(
    tmp_path: Path, settings: Settings, now: dt.datetime
) -> None:
    (tmp_path / "file").write_text("")
    settings.REVOCATIONS_FILE = tmp_path / "file" / "revocations.jsonl"
    anna = factories.make_user("anna", name="Anna Ek")
    users.set_password(user=anna, password=PASSWORD, now=now)
    assert User.objects.get(pk=anna.pk).check_password(PASSWORD)
    with pytest.raises(OSError, match="file"):
        erasure.erase_person(user=anna, by=None, now=now)
    assert User.objects.get(pk=anna.pk).name == "Anna Ek"
