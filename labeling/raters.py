"""Raters: whoever rates within a project. Alone changes the Rater table, except for how far a rater has come, which is
`labeling.onboarding`'s to say."""

import datetime as dt
import uuid

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

import rawsql
from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import Assignment, Gold, Project, Rater
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose
from labeling.models.gold import GoldUse
from labeling.models.rater import RaterKind, RaterStage


def find_rater_id(*, slug: str, user_id: int) -> int | None:
    """The rater that a person is in a project, by the project's name in addresses."""
    found = rawsql.fetch_rows(_IN_PROJECT, {"slug": slug, "user": user_id})
    return found[0][0] if found else None


def list_rater_ids(*, user_id: int) -> list[int]:
    """All that a person is or was in projects. To look for their work by: joined with it by the person, PostgreSQL may
    go through everybody's."""
    return list(Rater.objects.filter(user=user_id).values_list("pk", flat=True))


def find_rater_id_of_assignment(*, assignment_id: int, user_id: int) -> int | None:
    """Whose hands an assignment is in, if they are this person's."""
    if assignment_id > _LAST_ID:
        return None
    found = rawsql.fetch_rows(_OF_ASSIGNMENT, {"assignment": assignment_id, "user": user_id})
    return found[0][0] if found else None


_LAST_ID = 2**63 - 1  # an address can hold more than a column


_IN_PROJECT = """
SELECT r.id FROM labeling_rater r JOIN labeling_project p ON p.id = r.project_id
WHERE p.slug = %(slug)s AND r.user_id = %(user)s"""
_OF_ASSIGNMENT = """
SELECT r.id FROM labeling_assignment a JOIN labeling_rater r ON r.id = a.rater_id
WHERE a.id = %(assignment)s AND r.user_id = %(user)s"""


def ensure_member(*, project: Project, user: User, now: dt.datetime) -> Rater:
    """The rater that a member is. Somebody who comes back finds the pseudonym and the work of before."""
    rater, _ = Rater.objects.get_or_create(
        project=project,
        user=user,
        defaults={
            "kind": RaterKind.MEMBER,
            "labeler": _new_pseudonym(),
            "stage": _first_stage(project),
            "added_at": now,
        },
    )
    if rater.removed_at is not None:
        rater.removed_at = None
        rater.save(update_fields=["removed_at"])
    return rater


def remove_rater(*, rater: Rater, now: dt.datetime) -> None:
    """The rater is handed nothing more. Rows and labels stay: they are somebody's work."""
    Rater.objects.active().filter(pk=rater.pk).update(removed_at=now)


def pause_rater(*, rater: Rater, reason: str, note: str = "", by: User | None, now: dt.datetime) -> bool:
    """Hand the rater nothing until a lead lets them go on. `reason` is what the rater reads, `note` is for leads alone;
    what is opened may be finished. False where they were paused already."""
    with transaction.atomic():
        changed = Rater.objects.filter(pk=rater.pk, paused_at=None).update(
            paused_at=now, paused_reason=reason[:300], paused_note=note[:300]
        )
        if changed:
            queue.release_held(rater_id=rater.pk, now=now, reason="rater paused", by=by)
            _log_rater_event("rater.paused", rater, by, now, reason=reason, note=note)
    return bool(changed)


def resume_rater(*, rater: Rater, by: User | None, now: dt.datetime) -> bool:
    """The rater goes on, and is watched from here anew, with as much gold as a newcomer: what led to the pause is not
    held against them again."""
    with transaction.atomic():
        changed = Rater.objects.filter(pk=rater.pk, paused_at__isnull=False).update(
            paused_at=None, paused_reason="", paused_note="", watched_since_at=now, proven_at=None
        )
        if changed:
            _log_rater_event("rater.resumed", rater, by, now)
    return bool(changed)


def mark_trusted(*, project_id: int, since: dt.datetime, now: dt.datetime) -> int:
    """Raters who have worked from `since` on, or longer, without a pause are known well enough: from here on less of
    what they are handed is gold. Says of how many that is new; each is an event."""
    begun = Assignment.objects.filter(
        rater=OuterRef("pk"),
        purpose__in=[AssignmentPurpose.WORK, AssignmentPurpose.GOLD],
        origin=AssignmentOrigin.HERE,
        held_at__lte=since,
    )
    early = begun.filter(Q(held_at__gt=OuterRef("watched_since_at")) | Q(rater__watched_since_at=None))
    found = Rater.objects.members().filter(project=project_id, proven_at=None, paused_at=None)
    n_proven = 0
    for rater in found.active().filter(Exists(early)).order_by("pk"):
        # The condition again in the statement that writes: a pause may have come between.
        if Rater.objects.filter(pk=rater.pk, proven_at=None, paused_at=None).update(proven_at=now):
            _log_rater_event("rater.proven", rater, None, now)
            n_proven += 1
    return n_proven


def _log_rater_event(what: str, rater: Rater, by: User | None, now: dt.datetime, **detail: str) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=rater.project_id, subject=f"rater:{rater.pk}", detail=detail)


def ensure_labeler(*, project: Project, labeler: str, now: dt.datetime) -> Rater:
    """Whoever carries this pseudonym here, otherwise a rater known by the file alone."""
    rater, _ = Rater.objects.get_or_create(
        project=project, labeler=labeler, defaults={"kind": RaterKind.IMPORTED, "added_at": now}
    )
    return rater


def ensure_unknown(*, project: Project, now: dt.datetime) -> Rater:
    """The one rater that stands for all labels whose file does not say whose they are."""
    rater, _ = Rater.objects.get_or_create(
        project=project, kind=RaterKind.UNKNOWN, defaults={"labeler": None, "added_at": now}
    )
    return rater


def ensure_machine(*, project: Project, name: str, now: dt.datetime) -> Rater:
    """A machine of a named kind: a judge with its prompt, or Monte Carlo rollouts with their number."""
    rater, _ = Rater.objects.get_or_create(
        project=project,
        kind=RaterKind.MACHINE,
        machine=name,
        defaults={"labeler": _new_pseudonym(), "added_at": now},
    )
    return rater


def _new_pseudonym() -> str:
    """Random, so that nothing about the person can be worked out from it."""
    return str(uuid.uuid4())


def _first_stage(project: Project) -> RaterStage:
    """Training and screening are for those who come after they were put up; who works already goes on."""
    golds = Gold.objects.active().filter(trace__project=project)
    uses = set(golds.filter(use__in=[GoldUse.TRAINING, GoldUse.SCREENING]).values_list("use", flat=True))
    if GoldUse.TRAINING in uses:
        return RaterStage.TRAINING
    return RaterStage.SCREENING if GoldUse.SCREENING in uses else RaterStage.WORKING
