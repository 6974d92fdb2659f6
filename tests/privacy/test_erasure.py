"""Nothing names an erased person, and their labels are kept."""

import datetime as dt
import hashlib
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from pytest_django import Settings

from accounts.models import User
from events import append_only, audit_log, origins
from events.append_only import TOMBSTONE
from events.models import Event, EventOrigin
from exports import snapshots
from exports.models import SnapshotFile
from labeling.models import Guideline, Submission
from people import members
from people.models import MemberMessage, Role
from people.roles import NotAllowed
from privacy import erasure
from tests import factories
from tests.exports import snapshot_builder
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas, make_personas
from tests.privacy.rows_of_person import (
    EMAIL,
    NAME,
    TEXT,
    USERNAME,
    WORKER,
    fill_all_tables,
    list_tables_with,
    read_figures,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def revocations_file(tmp_path: Path, settings: Settings) -> Path:
    settings.REVOCATIONS_FILE = file = tmp_path / "revocations.jsonl"
    return file


@pytest.fixture
def cast() -> Personas:
    return make_personas()


@pytest.fixture
def person(cast: Personas, now: dt.datetime) -> User:
    user = factories.make_user(USERNAME, name=NAME, email=EMAIL)
    members.add_member(project=cast.project, user=user, role=Role.ANNOTATOR, now=now)
    user.worker_id = cast.project.worker_ids.create(user=user, worker=WORKER, first_came_at=now, last_came_at=now)
    return user


def test_no_table_names_an_erased_person(cast: Personas, person: User, now: dt.datetime) -> None:
    fill_all_tables(person, cast.project)
    with origins.request_origin(address="2001:db8::77", browser="Quark"):
        audit_log.log_event(what="rater.paused", by=person, now=now, detail={"reason": "quark", "purpose": "login"})
    assert len(list_tables_with(TEXT)) > 30
    others = cast.membership(cast.annotator).messages.create(
        text="Please look again.", written_by=cast.lead, written_at=now
    )
    erased = erasure.erase_person(user=person, by=None, now=now)
    assert list_tables_with(TEXT) == {}
    assert list_tables_with("2001:db8::77") == {}
    assert erased.mentions == []
    assert MemberMessage.objects.filter(pk=others.pk, text="Please look again.", written_by=cast.lead).exists()
    event = Event.objects.get(what="rater.paused")
    assert event.detail == {"reason": TOMBSTONE, "purpose": "login"}
    assert not EventOrigin.objects.filter(event=event).exists()


def test_labels_stay(cast: Personas, person: User, now: dt.datetime) -> None:
    rater, trace = person.raters.get(), factories.make_trace(cast.project)
    done = factories.make_submitted(rater, trace, ms=5000)
    judgment = factories.make_judgment(done, rating=-1, reason="quark", comment="Quark says so.")
    turn = judgment.turn
    erasure.erase_person(user=person, by=None, now=now)
    judgment.refresh_from_db()
    turn.refresh_from_db()
    assert (judgment.rating, judgment.reason, turn.comment) == (-1, TOMBSTONE, TOMBSTONE)
    submission = Submission.objects.get(assignment=done)
    assert (submission.total_ms, submission.finish_reason, submission.finish_note) == (5000, "solution", "")
    rater.refresh_from_db()
    assert rater.labeler
    assert rater.user == person


@pytest.mark.fault
def test_agreement_and_pay_stay(now: dt.datetime) -> None:
    project = submitted_work.project_with_two_submissions()
    project.pay_per_hour = Decimal(20)
    project.save()
    rater = project.raters.earliest("pk")
    project.work_days.create(rater=rater, day=now.date(), readings=4, active_ms=3_000_000, paid_ms=3_600_000)

    before = read_figures(project, now)
    assert before[-1]
    assert rater.user
    erasure.erase_person(user=rater.user, by=None, now=now)
    assert read_figures(project, now) == before


def test_texts_of_others_stay(cast: Personas, person: User, now: dt.datetime) -> None:
    other = factories.make_submitted(factories.make_rater(cast.project), factories.make_trace(cast.project))
    turn = factories.make_judgment(other, comment="The sign is wrong.").turn
    guideline = Guideline.objects.create(
        project=cast.project, version=1, body=f"Ask {NAME}, not {NAME}s. Write to {EMAIL.upper()}.", published_at=now
    )
    erasure.erase_person(user=person, by=None, now=now)
    turn.refresh_from_db()
    guideline.refresh_from_db()
    assert turn.comment == "The sign is wrong."
    assert guideline.body == f"Ask {TOMBSTONE}, not {NAME}s. Write to {TOMBSTONE}."


def test_a_name_that_is_a_word_is_reported_and_not_replaced(cast: Personas, now: dt.datetime) -> None:
    will = factories.make_user("will", name="Will")
    cast.project.description = "You will rate steps."
    cast.project.save()
    erased = erasure.erase_person(user=will, by=None, now=now)
    assert [(each.table, each.column, each.n_rows) for each in erased.mentions] == [
        ("labeling_project", "description", 1)
    ]
    cast.project.refresh_from_db()
    assert cast.project.description == "You will rate steps."


def test_snapshots_are_written_again_without_the_texts(
    cast: Personas, person: User, settings: Settings, tmp_path: Path, now: dt.datetime
) -> None:
    settings.DATA_DIR = tmp_path
    done = factories.make_submitted(person.raters.get(), factories.make_trace(cast.project))
    factories.make_judgment(done, rating=-1, reason="Quark says so.")
    snapshot = snapshot_builder.build_snapshot(cast.project, "steps", "native")
    file = SnapshotFile.objects.get(format="steps")
    before = snapshot_builder.read_file(snapshot, file.name)
    assert b"Quark" in before
    assert erasure.erase_person(user=person, by=None, now=now).rebuilt_snapshots == [snapshot.name]
    assert not SnapshotFile.objects.exists()
    snapshot.refresh_from_db()
    snapshot_builder.run_chunks(snapshots.build_shard(snapshot, 0, enqueue=False))
    after = snapshot_builder.read_file(snapshot, file.name)
    assert after == before.replace(b"Quark says so.", TOMBSTONE.encode())
    assert SnapshotFile.objects.get(format="steps").sha256 == hashlib.sha256(after).hexdigest()


@pytest.mark.parametrize(
    ("event", "change"),
    [
        ("user.erased", "finish_note = 'other words'"),
        ("user.erased", "finish_note = '[erased]', finish_reason = 'give_up'"),
        ("user.erased", "total_ms = 1"),
        ("member.left", "finish_note = '[erased]'"),
    ],
)
def test_the_door_is_narrow(cast: Personas, event: str, change: str, now: dt.datetime) -> None:
    """During an erasure, nothing but the tombstone gets into append-only tables, and only with its event."""
    factories.make_submitted(factories.make_rater(cast.project), factories.make_trace(cast.project))
    audit_log.log_event(what=event, by=None, now=now)
    number = Event.objects.latest("pk").pk
    with (
        pytest.raises(IntegrityError, match="labeling_submission"),
        append_only.erasure(event_id=number),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"UPDATE labeling_submission SET {change}")


def test_the_door_closes(cast: Personas, person: User, now: dt.datetime) -> None:
    factories.make_submitted(factories.make_rater(cast.project), factories.make_trace(cast.project))
    erasure.erase_person(user=person, by=None, now=now)
    with pytest.raises(IntegrityError), transaction.atomic():
        Submission.objects.update(finish_note=TOMBSTONE)
    number = Event.objects.latest("pk").pk
    with pytest.raises(IntegrityError), append_only.erasure(event_id=number):
        Event.objects.filter(pk=number)._raw_delete(using="default")


def test_erase_ends_memberships(cast: Personas, person: User, now: dt.datetime) -> None:
    erasure.erase_person(user=person, by=None, now=now)
    person.refresh_from_db()
    assert (person.username, person.email, person.name, person.is_active) == (f"erased-{person.pk}", "", "", False)
    assert not person.memberships.filter(left_at=None).exists()
    assert list(Event.objects.order_by("-pk").values_list("what", flat=True)[:2]) == ["user.erased", "member.left"]


def test_the_last_owner_is_not_erased(cast: Personas, now: dt.datetime) -> None:
    with pytest.raises(members.LastOwner):
        erasure.erase_person(user=cast.owner, by=None, now=now)
    cast.owner.refresh_from_db()
    assert cast.owner.erased_at is None


@pytest.mark.parametrize("actor", ["lead", "reviewer", "annotator"])
def test_only_owners_erase_members(cast: Personas, person: User, actor: str, now: dt.datetime) -> None:
    with pytest.raises(NotAllowed):
        erasure.erase_member(membership=cast.membership(person), by=getattr(cast, actor), now=now)


def test_an_owner_erases_only_people_of_their_own_projects(cast: Personas, person: User, now: dt.datetime) -> None:
    elsewhere = make_personas("other-")
    membership = members.add_member(project=elsewhere.project, user=person, role=Role.VIEWER, now=now)
    with pytest.raises(NotAllowed):
        erasure.erase_member(membership=cast.membership(person), by=cast.owner, now=now)
    members.remove_member(membership=membership, by=elsewhere.owner, now=now)
    erasure.erase_member(membership=cast.membership(person), by=cast.owner, now=now)
    person.refresh_from_db()
    assert person.erased_at == now


def test_command(person: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("erase_person", EMAIL.upper(), "--yes")
    person.refresh_from_db()
    assert person.erased_at
    assert NAME not in capsys.readouterr().out
    with pytest.raises(CommandError):
        call_command("erase_person", USERNAME, "--yes")
