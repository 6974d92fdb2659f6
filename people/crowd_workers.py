"""Annotators from a crowd platform, identified by the worker ID in the URL. The only module that writes WorkerId rows.

The invitation is the secret. A worker ID is not a password: it is useless without the project's link, and it only opens
accounts that were created this way."""

import datetime as dt
import re
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import tokens, users
from labeling.models import Project
from people import invitations, members
from people.invitations import InvitationInvalid
from people.models import Invitation, Membership, Role, WorkerId

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class CrowdVisit(NamedTuple):
    """The IDs in the URL with which the platform sends a worker."""

    worker: str
    study: str = ""
    session: str = ""


class InvalidWorkerId(Exception):
    """The URL has no valid worker ID. The message can be shown to users."""


class WorkerCannotReturn(Exception):
    """The worker has left the project, or has an account with more rights than a worker ID may open."""


def read_visit(*, project: Project, values_of: Callable[[str], Sequence[str]]) -> CrowdVisit | None:
    """Read the URL parameters that the project names. Return None without them; raise InvalidWorkerId if invalid."""
    if not project.takes_worker_ids or not values_of(project.worker_parameter):
        return None
    names = (project.worker_parameter, project.study_parameter, project.session_parameter)
    visit = CrowdVisit(*(_checked_parameter(name, values_of) for name in names))
    if not visit.worker:
        raise InvalidWorkerId(
            _("The link has no value for %(name)s. Open it from the platform again.")
            % {"name": project.worker_parameter}
        )
    return visit


def _checked_parameter(name: str, values_of: Callable[[str], Sequence[str]]) -> str:
    values = [value for value in values_of(name) if value] if name else []
    if len(values) > 1:
        raise InvalidWorkerId(
            _("The link has more than one %(name)s. Open it from the platform again.") % {"name": name}
        )
    if values and not _ID.fullmatch(values[0]):
        raise InvalidWorkerId(
            _(
                "The link has an invalid %(name)s: an ID has up to 64 letters, digits, - and _."
                " Open it from the platform again."
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


def admit_worker(*, token: str, visit: CrowdVisit, now: dt.datetime) -> Membership:
    """Return the worker's membership, created on the first visit.

    Raises InvitationInvalid or WorkerCannotReturn."""
    invitation = find_worker_invitation(token=token, now=now)
    if invitation is None:
        raise InvitationInvalid
    with transaction.atomic():
        # The lock makes sure that concurrent visits create one account.
        members.lock_memberships(project=invitation.project)
        worker = WorkerId.objects.filter(project=invitation.project, worker=visit.worker).select_related("user").first()
        return _admit_new(invitation, visit, now) if worker is None else _readmit(worker, visit, now)


def _readmit(worker: WorkerId, visit: CrowdVisit, now: dt.datetime) -> Membership:
    memberships = {each.project_id: each for each in Membership.objects.of(worker.user)}
    roles = {each.role for each in memberships.values()}
    is_plain = worker.user.is_active and not worker.user.is_staff and roles <= {Role.ANNOTATOR}
    if worker.project_id not in memberships or not is_plain:
        raise WorkerCannotReturn
    WorkerId.objects.filter(pk=worker.pk).update(study=visit.study, session=visit.session, last_came_at=now)
    return memberships[worker.project_id]


def _admit_new(invitation: Invitation, visit: CrowdVisit, now: dt.datetime) -> Membership:
    # The username says nothing about the person. Without a password, the link is the only way to log in.
    user = users.create_user(username=f"worker-{secrets.token_hex(6)}", now=now)
    # The log is permanent, so it does not contain the worker ID.
    membership = invitations.add_invited(invitation=invitation, user=user, now=now, by_worker_id=True)
    WorkerId.objects.create(
        project=invitation.project, user=user, first_came_at=now, last_came_at=now, **visit._asdict()
    )
    return membership
