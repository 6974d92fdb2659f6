"""Erase a person: delete names, addresses and texts, and keep the labels under the pseudonym.

This module writes rows of all packages, as the inventory says, because no package knows all of them. An erasure is
recorded in a file outside of the database, so that a restored backup does not bring the person back.
"""

import datetime as dt
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.apps import apps
from django.db import transaction
from django.db.models import Manager, Model, Q, QuerySet

from accounts import users
from accounts.models import User
from events import append_only, audit_log, origins, revocations
from events.append_only import TOMBSTONE
from events.models import Event
from exports import snapshots
from exports.models import Snapshot
from labeling import raters
from notices.models import Notice
from people import members
from people.models import Invitation, Membership, Role
from people.roles import NotAllowed
from privacy import mentions
from privacy.inventory import DELETED_ROWS, REPLACED_TEXTS
from privacy.mentions import Mention

_CHUNK = 2000


class ErasedPerson(NamedTuple):
    rebuilt_snapshots: list[str]
    mentions: list[Mention]  # texts of projects in which a name remains, because it is also an ordinary word


def may_erase(*, membership: Membership, by: User) -> bool:
    """Whether an owner may erase this person: the owner manages them in every project that they belong to."""
    actor = Membership.objects.of(by).filter(project=membership.project_id).first()
    if actor is None or actor.role != Role.OWNER or membership.user_id == by.pk or membership.user.erased_at:
        return False
    user = membership.user
    others = Membership.objects.of(user)
    own = {each.project_id: each for each in Membership.objects.of(by)}
    return not (user.is_staff or user.is_superuser) and all(
        each.project_id in own and own[each.project_id].role == Role.OWNER for each in others
    )


def erase_member(*, membership: Membership, by: User, now: dt.datetime) -> ErasedPerson:
    """Erase a current or former member of a project."""
    if not may_erase(membership=membership, by=by):
        raise NotAllowed
    return erase_person(user=membership.user, by=by, now=now)


def erase_person(*, user: User, by: User | None, now: dt.datetime) -> ErasedPerson:
    """Erase personal data and end all memberships, in one transaction. Raises LastOwner."""
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        identifiers = mentions.list_identifiers(user)
        # Recorded first: after a crash in between, a restore erases too much rather than too little.
        revocations.note_revocation(what="erasure", account=users.compute_digest(user), now=now)
        members.end_memberships(user=user, by=by, now=now)
        rebuilt = _rebuild_snapshots(user, by, now)
        audit_log.log_event(what="user.erased", by=by, now=now, subject=f"user:{user.pk}")
        event = Event.objects.filter(what="user.erased", subject=f"user:{user.pk}").latest("pk")
        with append_only.erasure(event_id=event.pk):
            _replace_texts(user)
            _clean_events(user)
            mentions.replace_mentions(identifiers=identifiers)
        _delete_rows(user)
        users.erase_user(user=user, now=now)
        origins.erase_origins(user_id=user.pk, now=now)
        return ErasedPerson(rebuilt, mentions.find_mentions(identifiers) if identifiers else [])


def _rows_of(label: str, paths: Iterable[str], user: User) -> QuerySet[Model]:
    condition = reduce(or_, (Q(**{path: user}) for path in paths))
    rows: Manager[Model] = apps.get_model(label)._default_manager
    return rows.filter(pk__in=rows.filter(condition).values("pk"))


def _delete_rows(user: User) -> None:
    for label, paths in DELETED_ROWS.items():
        _rows_of(label, paths, user).delete()


def _replace_texts(user: User) -> None:
    for label, texts in REPLACED_TEXTS.items():
        for field in texts.fields:
            _rows_of(label, texts.paths, user).filter(**{f"{field}__gt": ""}).update(**{field: TOMBSTONE})
    accepted = Event.objects.filter(what="invitation.accepted", by=user.pk).values_list("subject", flat=True)
    numbers = [int(subject.partition(":")[2]) for subject in accepted]
    Invitation.objects.filter(pk__in=numbers, note__gt="").update(note=TOMBSTONE)


def _clean_events(user: User) -> None:
    """Remove typed texts from events and notices by or about the person."""
    subjects = [f"user:{user.pk}", *(f"rater:{pk}" for pk in raters.list_rater_ids(user_id=user.pk))]
    theirs = Event.objects.filter(Q(by=user.pk) | Q(subject__in=subjects)).exclude(detail={})
    for event in theirs.only("detail").iterator(chunk_size=_CHUNK):
        cleaned = mentions.remove_typed_texts(event.detail)
        if cleaned != event.detail:
            Event.objects.filter(pk=event.pk).update(detail=cleaned)
    for notice in Notice.objects.filter(event__in=theirs.values("pk")):
        data = mentions.remove_typed_texts(notice.content.get("data", {}))
        Notice.objects.filter(pk=notice.pk).update(content={**notice.content, "data": data})


def _rebuild_snapshots(user: User, by: User | None, now: dt.datetime) -> list[str]:
    """Delete the files of snapshots that contain texts of the person, and write them again without these.

    Datasets contain reasons of ratings, quotes, omissions, written steps and answers, but no comments and notes."""
    written = Q(assignment__turns__written_text__gt="") | Q(assignment__turns__judgments__reason__gt="")
    written |= Q(assignment__turns__missing__gt="") | Q(assignment__turns__judgments__evidence__isnull=False)
    written |= Q(assignment__answers__value__gt="")
    submission = apps.get_model("labeling.Submission")
    theirs = submission.objects.filter(written, assignment__rater__user=user).values("pk")
    affected = Snapshot.objects.filter(manifest__rows__submission__in=theirs).distinct().select_related("project")
    for snapshot in affected:
        snapshots.rebuild_snapshot(snapshot=snapshot, by=by, now=now)
    return [snapshot.name for snapshot in affected]
