"""Annotators from a crowd platform, identified by the worker ID in the URL. The only module that writes WorkerId and
WorkerDevice rows.

All workers of a study share one link, so the link alone proves nothing. Either the platform signs the IDs in it with
the project's key, or an ID is tied to the browser that first used it, and every other browser waits for a lead."""

import datetime as dt
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from accounts import tokens, users
from accounts.models import User
from events import audit_log
from labeling.models import Project
from people import invitations, members, roles
from people.invitations import InvitationInvalid
from people.models import Invitation, Membership, Role, WorkerDevice, WorkerId

MAX_WAITING_DEVICES = 5  # of one worker: anyone with the link and an ID can add one
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEY_SALT = "people.crowd_workers.signing_key"


class CrowdVisit(NamedTuple):
    """The IDs in the URL with which the platform sends a worker."""

    worker: str
    study: str = ""
    session: str = ""
    is_signed: bool = False  # the platform has proved the IDs


class DeviceNotReleased(Exception):
    """The worker ID came from another browser before. A lead can release this one."""


class InvalidWorkerId(Exception):
    """The URL has no valid worker ID. The message can be shown to users."""


class WorkerCannotReturn(Exception):
    """The worker has left the project, or has an account with more rights than a worker ID may open."""


def read_visit(*, project: Project, values_of: Callable[[str], Sequence[str]]) -> CrowdVisit | None:
    """Read the URL parameters that the project names. Return None without them; raise InvalidWorkerId if invalid."""
    if not project.takes_worker_ids or not values_of(project.worker_parameter):
        return None
    names = (project.worker_parameter, project.study_parameter, project.session_parameter)
    worker, study, session = (_checked_parameter(name, values_of) for name in names)
    visit = CrowdVisit(worker, study, session)
    if not visit.worker:
        raise InvalidWorkerId(
            _("The link has no value for %(name)s. Open it again from the crowd platform.")
            % {"name": project.worker_parameter}
        )
    return _check_signature(project, visit, values_of) if project.signature_parameter else visit


def _check_signature(project: Project, visit: CrowdVisit, values_of: Callable[[str], Sequence[str]]) -> CrowdVisit:
    values = values_of(project.signature_parameter)
    if len(values) != 1 or not constant_time_compare(values[0].lower(), sign_visit(project=project, visit=visit)):
        raise InvalidWorkerId(_("The link is not signed by the platform. Open it from the platform again."))
    return visit._replace(is_signed=True)


def sign_visit(*, project: Project, visit: CrowdVisit) -> str:
    """Return the hex HMAC-SHA256 of "worker|study|session" with the project's key."""
    message = f"{visit.worker}|{visit.study}|{visit.session}"
    return hmac.new(compute_signing_key(project).encode(), message.encode(), hashlib.sha256).hexdigest()


def compute_signing_key(project: Project) -> str:
    """Return the key with which the platform signs links. It is derived from the secret key, so no backup has it."""
    return salted_hmac(_KEY_SALT, str(project.pk), algorithm="sha256").hexdigest()


def _checked_parameter(name: str, values_of: Callable[[str], Sequence[str]]) -> str:
    values = [value for value in values_of(name) if value] if name else []
    if len(values) > 1:
        raise InvalidWorkerId(
            _("The link has more than one value for %(name)s. Open it again from the crowd platform.") % {"name": name}
        )
    if values and not _ID.fullmatch(values[0]):
        raise InvalidWorkerId(
            _(
                "The link has an invalid value for %(name)s: an ID has up to 64 letters, digits, - and _."
                " Open it again from the crowd platform."
            )
            % {"name": name}
        )
    return values[0] if values else ""


def find_worker_invitation(*, token: str, now: dt.datetime) -> Invitation | None:
    """Return an invitation for worker IDs. A used-up one still lets its earlier workers log in again."""
    links = Invitation.objects.filter(
        token_digest=tokens.hash_token(token),
        revoked_at=None,
        expires_at__gt=now,
        role=Role.ANNOTATOR,
        project__takes_worker_ids=True,
    )
    return links.select_related("project", "made_by").first()


def admit_worker(*, token: str, visit: CrowdVisit, device: str, now: dt.datetime) -> Membership:
    """Return the worker's membership, created on the first visit. `device` is the secret of the browser.

    Raises InvitationInvalid, WorkerCannotReturn or DeviceNotReleased."""
    invitation = find_worker_invitation(token=token, now=now)
    if invitation is None:
        raise InvitationInvalid
    with transaction.atomic():
        # The lock makes sure that concurrent visits create one account.
        members.lock_memberships(project=invitation.project)
        known = WorkerId.objects.filter(project=invitation.project, worker=visit.worker)
        worker = known.select_related("user").first()
        if worker is None:
            return _admit_new(invitation, visit, device, now)
        membership = _find_membership(worker)
        is_released = _check_device(worker, device, is_proved=visit.is_signed, now=now)
        if is_released:
            known.update(study=visit.study, session=visit.session, last_came_at=now)
    if not is_released:  # after the commit, which has recorded the device
        raise DeviceNotReleased
    return membership


def _find_membership(worker: WorkerId) -> Membership:
    memberships = {each.project_id: each for each in Membership.objects.of(worker.user)}
    held = {each.role for each in memberships.values()}
    is_plain = worker.user.is_active and not worker.user.is_staff and held <= {Role.ANNOTATOR}
    if worker.project_id not in memberships or not is_plain:
        raise WorkerCannotReturn
    return memberships[worker.project_id]


def _check_device(worker: WorkerId, device: str, *, is_proved: bool, now: dt.datetime) -> bool:
    """Return whether this browser may use the ID. A new one is recorded; it waits unless the platform proves the ID."""
    digest = tokens.hash_token(device)
    known = worker.devices.filter(digest=digest).first()
    if known is not None and (known.released_at is not None or not is_proved):
        return known.released_at is not None
    if not is_proved and worker.devices.filter(released_at=None).count() >= MAX_WAITING_DEVICES:
        return False
    WorkerDevice.objects.update_or_create(
        worker=worker, digest=digest, defaults={"came_at": now, "released_at": now if is_proved else None}
    )
    _log_event("member.device_added" if is_proved else "member.device_waiting", worker, worker.user, now)
    return is_proved


def _admit_new(invitation: Invitation, visit: CrowdVisit, device: str, now: dt.datetime) -> Membership:
    # The username says nothing about the person. Without a password, the link is the only way to log in.
    user = users.create_user(username=f"worker-{secrets.token_hex(6)}", is_worker=True, now=now)
    # The log is permanent, so it does not contain the worker ID.
    membership = invitations.add_invited(invitation=invitation, user=user, now=now, by_worker_id=True)
    worker = WorkerId.objects.create(
        project=invitation.project,
        user=user,
        worker=visit.worker,
        study=visit.study,
        session=visit.session,
        first_came_at=now,
        last_came_at=now,
    )
    digest = tokens.hash_token(device)
    if WorkerDevice.objects.filter(worker__project=invitation.project, digest=digest).exists():
        _log_event("member.device_shared", worker, user, now)
    WorkerDevice.objects.create(worker=worker, digest=digest, came_at=now, released_at=now)
    return membership


def release_device(*, device: WorkerDevice, by: User, now: dt.datetime) -> None:
    """Let a worker enter from another browser. Their work continues in it."""
    worker = WorkerId.objects.select_related("project", "user").get(pk=device.worker_id)
    actor = members.get_membership(project=worker.project, user=by)
    if not roles.may_manage(actor, Role.ANNOTATOR):
        raise roles.NotAllowed(_("Your role does not allow you to manage this person."))
    with transaction.atomic():
        if WorkerDevice.objects.filter(pk=device.pk, released_at=None).update(released_at=now, released_by=by):
            _log_event("member.device_released", worker, by, now)


def _log_event(what: str, worker: WorkerId, by: User, now: dt.datetime) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=worker.project_id, subject=f"user:{worker.user_id}")
