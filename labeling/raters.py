"""Raters: people, machines and imported labelers of a project. Create, remove, pause, resume and trust them.

Only this module changes the Rater table, except for what `labeling.onboarding` records there.
"""

import datetime as dt
import secrets
import uuid
from collections.abc import Mapping

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

MAX_TRACES_BEFORE_PAUSE = 5  # a pause by a check takes effect after 1 to this many further submissions


def find_rater_id(*, slug: str, user_id: int) -> int | None:
    """Return the rater of a person in a project."""
    rows = rawsql.fetch_rows(_IN_PROJECT, {"slug": slug, "user": user_id})
    return rows[0][0] if rows else None


def list_rater_ids(*, user_id: int) -> list[int]:
    """Return the ids of all raters of a person, for queries of their work. With a join on the person, PostgreSQL may
    read the work of all raters."""
    return list(Rater.objects.filter(user=user_id).values_list("pk", flat=True))


def find_rater_id_of_assignment(*, assignment_id: int, user_id: int) -> int | None:
    """Return the rater of an assignment if it belongs to this person."""
    rater = _owners.get((assignment_id, user_id))
    if rater is None and assignment_id <= _LAST_ID:
        rows = rawsql.fetch_rows(_OF_ASSIGNMENT, {"assignment": assignment_id, "user": user_id})
        rater = rows[0][0] if rows else None
        if rater is not None:
            remember_owner(assignment_id=assignment_id, user_id=user_id, rater_id=rater)
    return rater


def remember_owner(*, assignment_id: int, user_id: int, rater_id: int) -> None:
    """Remember, in this process, to whom an assignment belongs. An assignment keeps its rater, and a rater its person:
    users are never deleted. What they may do is read with each request."""
    if len(_owners) >= _MAX_OWNERS:
        _owners.clear()
    _owners[assignment_id, user_id] = rater_id


_MAX_OWNERS = 5000
_owners: dict[tuple[int, int], int] = {}
_LAST_ID = 2**63 - 1  # a URL can contain a larger number than a column
_IN_PROJECT = """
SELECT r.id FROM labeling_rater r JOIN labeling_project p ON p.id = r.project_id
WHERE p.slug = %(slug)s AND r.user_id = %(user)s"""
_OF_ASSIGNMENT = """
SELECT r.id FROM labeling_assignment a JOIN labeling_rater r ON r.id = a.rater_id
WHERE a.id = %(assignment)s AND r.user_id = %(user)s"""
_HAVE_PENDING_PAUSES = """
SELECT id FROM labeling_rater WHERE id = ANY (%(raters)s::bigint[]) AND pending_pause IS NOT NULL"""


def ensure_member(*, project: Project, user: User, now: dt.datetime) -> Rater:
    """Return the rater of a member. A returning member keeps the previous pseudonym and work."""
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
    queue.record_reviewed_halves(rater=rater)
    return rater


def remove_rater(*, rater: Rater, now: dt.datetime) -> None:
    """Stop assigning traces to the rater. Rows and labels stay."""
    Rater.objects.active().filter(pk=rater.pk).update(removed_at=now)


def schedule_pause(*, rater: Rater, reason: str, note: str, now: dt.datetime, evidence: Mapping[str, object]) -> bool:
    """Pause the rater after a random number of further submissions. Return False if that is decided already.

    A pause directly after a submission would reveal that the trace was gold.
    """
    n_left = 1 + secrets.randbelow(MAX_TRACES_BEFORE_PAUSE) if MAX_TRACES_BEFORE_PAUSE else 0
    if not n_left:
        return pause_rater(rater=rater, reason=reason, note=note, by=None, now=now, evidence=evidence)
    pending = {"n_left": n_left, "reason": reason, "note": note, "evidence": dict(evidence)}
    return bool(
        Rater.objects.filter(pk=rater.pk, paused_at=None, pending_pause__isnull=True).update(pending_pause=pending)
    )


def count_toward_pause(*, n_submitted: Mapping[int, int], now: dt.datetime) -> None:
    """Count submissions by rater, and pause raters whose scheduled pause takes effect with them."""
    if not rawsql.fetch_rows(_HAVE_PENDING_PAUSES, {"raters": list(n_submitted)}):
        return
    waiting = Rater.objects.select_for_update(no_key=True).filter(pk__in=n_submitted, pending_pause__isnull=False)
    for rater in waiting.order_by("pk"):
        pending = rater.pending_pause or {}
        if pending["n_left"] > n_submitted[rater.pk]:
            rater.pending_pause = {**pending, "n_left": pending["n_left"] - n_submitted[rater.pk]}
            rater.save(update_fields=["pending_pause"])
        else:
            shown = {"reason": pending["reason"], "note": pending["note"]}
            pause_rater(rater=rater, **shown, by=None, now=now, evidence=pending["evidence"])


def pause_rater(
    *,
    rater: Rater,
    reason: str,
    note: str = "",
    by: User | None,
    now: dt.datetime,
    evidence: Mapping[str, object] | None = None,
) -> bool:
    """Stop assigning traces to the rater until a lead resumes them. Return False if they are already paused.

    Without `by`, a check pauses them, and the event has its evidence. The rater reads who paused them and the `reason`;
    only leads read `note`. Open traces can still be finished.
    """
    with transaction.atomic():
        changed = Rater.objects.filter(pk=rater.pk, paused_at=None).update(
            paused_at=now,
            is_paused_by_check=by is None,
            paused_reason=reason[:300],
            paused_note=note[:300],
            pending_pause=None,
        )
        if changed:
            queue.release_held(rater_id=rater.pk, now=now, reason="rater paused", by=by)
            detail = {"evidence": dict(evidence)} if evidence else {}
            log_rater_event("rater.paused", rater, by, now, reason=reason, note=note, **detail)
    return bool(changed)


def resume_rater(*, rater: Rater, by: User | None, now: dt.datetime) -> bool:
    """End a pause. Quality monitoring starts over: earlier gold does not count, and the rater is no longer trusted."""
    with transaction.atomic():
        changed = Rater.objects.filter(pk=rater.pk, paused_at__isnull=False).update(
            paused_at=None,
            is_paused_by_check=False,
            paused_reason="",
            paused_note="",
            pending_pause=None,
            watched_since_at=now,
            proven_at=None,
        )
        if changed:
            log_rater_event("rater.resumed", rater, by, now)
    return bool(changed)


def mark_trusted(*, project_id: int, since: dt.datetime, now: dt.datetime) -> int:
    """Trust raters who have worked since `since` without a pause: they get less gold. Return how many are new."""
    work = Assignment.objects.filter(
        rater=OuterRef("pk"),
        purpose__in=[AssignmentPurpose.WORK, AssignmentPurpose.GOLD],
        origin=AssignmentOrigin.HERE,
        held_at__lte=since,
    )
    early = work.filter(Q(held_at__gt=OuterRef("watched_since_at")) | Q(rater__watched_since_at=None))
    untrusted = Rater.objects.members().filter(project=project_id, proven_at=None, paused_at=None)
    n_trusted = 0
    for rater in untrusted.active().filter(Exists(early)).order_by("pk"):
        # The condition is checked again by the update: the rater may have been paused in the meantime.
        if Rater.objects.filter(pk=rater.pk, proven_at=None, paused_at=None).update(proven_at=now):
            log_rater_event("rater.proven", rater, None, now)
            n_trusted += 1
    return n_trusted


def log_rater_event(what: str, rater: Rater, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=rater.project_id, subject=f"rater:{rater.pk}", detail=detail)


def ensure_labeler(*, project: Project, labeler: str, now: dt.datetime) -> Rater:
    """Return the rater with this pseudonym, otherwise an imported labeler."""
    return Rater.objects.get_or_create(
        project=project, labeler=labeler, defaults={"kind": RaterKind.IMPORTED, "added_at": now}
    )[0]


def ensure_unknown(*, project: Project, now: dt.datetime) -> Rater:
    """Return the project's rater for labels whose file names no labeler."""
    return Rater.objects.get_or_create(
        project=project, kind=RaterKind.UNKNOWN, defaults={"labeler": None, "added_at": now}
    )[0]


def ensure_machine(*, project: Project, name: str, now: dt.datetime) -> Rater:
    """Return the rater for a named machine, such as a judge with its prompt or a number of Monte Carlo rollouts."""
    return Rater.objects.get_or_create(
        project=project,
        kind=RaterKind.MACHINE,
        machine=name,
        defaults={"labeler": _new_pseudonym(), "added_at": now},
    )[0]


def _new_pseudonym() -> str:
    """Random, so that it reveals nothing about the person."""
    return str(uuid.uuid4())


def _first_stage(project: Project) -> RaterStage:
    """Return where new members begin: with training or screening, if the project has gold for it."""
    golds = Gold.objects.active().filter(trace__project=project)
    uses = set(golds.filter(use__in=[GoldUse.TRAINING, GoldUse.SCREENING]).values_list("use", flat=True))
    if GoldUse.TRAINING in uses:
        return RaterStage.TRAINING
    return RaterStage.SCREENING if GoldUse.SCREENING in uses else RaterStage.WORKING
