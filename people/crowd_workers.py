"""People who come from a crowd platform, known by the worker id in the address. Alone writes WorkerId rows.

The invitation is the secret: a worker id is no password, it opens nothing without the project's own link, and leads to
an account that was made this way and to no other."""

import datetime as dt
import re
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import secret_tokens, users
from accounts.models import User
from events import audit_log
from labeling.models import Project
from people import invitations, members
from people.invitations import InvitationInvalid
from people.models import Invitation, Membership, Role, WorkerId

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class CrowdVisit(NamedTuple):
    """What the platform's address says of somebody who comes."""

    worker: str
    study: str = ""
    session: str = ""


class InvalidWorkerId(Exception):
    """The address carries something that no platform calls a person. `str()` of it may be shown to people."""


class WorkerCannotReturn(Exception):
    """The worker id belongs to somebody who has left, or whose account opens more than a worker id may."""


def read_visit(*, project: Project, values_of: Callable[[str], Sequence[str]]) -> CrowdVisit | None:
    """Who comes, by the parameters that the project names. None: the address names nobody. Raises NotAWorkerId."""
    if not project.takes_worker_ids or not values_of(project.worker_parameter):
        return None
    worker = _checked_parameter(project.worker_parameter, values_of)
    if not worker:
        raise InvalidWorkerId(
            _("The address has an empty %(name)s. Open the link from the platform again.")
            % {"name": project.worker_parameter}
        )
    return CrowdVisit(
        worker,
        _checked_parameter(project.study_parameter, values_of),
        _checked_parameter(project.session_parameter, values_of),
    )


def _checked_parameter(name: str, values_of: Callable[[str], Sequence[str]]) -> str:
    values = [value for value in values_of(name) if value] if name else []
    if len(values) > 1:
        raise InvalidWorkerId(
            _("The address names %(name)s twice. Open the link from the platform again.") % {"name": name}
        )
    if values and not _ID.fullmatch(values[0]):
        raise InvalidWorkerId(
            _(
                "What the address gives as %(name)s is not an id: up to 64 letters, digits, - and _."
                " Open the link from the platform again."
            )
            % {"name": name}
        )
    return values[0] if values else ""


def find_worker_invitation(*, token: str, now: dt.datetime) -> Invitation | None:
    """An invitation by which a worker id may come in, or come back: used up it still lets back in who came by it."""
    links = Invitation.objects.filter(
        token_digest=secret_tokens.hash_token(token),
        revoked_at=None,
        expires_at__gt=now,
        role=Role.ANNOTATOR,
        project__takes_worker_ids=True,
    )
    return links.select_related("project", "made_by").first()


def admit_worker(*, token: str, arrival: CrowdVisit, now: dt.datetime) -> Membership:
    """The member that this worker id is, made on the first visit. Raises InvitationIsOver or CannotComeBack."""
    invitation = find_worker_invitation(token=token, now=now)
    if invitation is None:
        raise InvitationInvalid
    with transaction.atomic():
        # The project's memberships are held: of two visits at once, one makes the account.
        members.lock_memberships(project=invitation.project)
        known = (
            WorkerId.objects.filter(project=invitation.project, worker=arrival.worker).select_related("user").first()
        )
        if known is not None:
            return _readmit(known, arrival, now)
        return _admit_new(invitation, arrival, now)


def _readmit(known: WorkerId, arrival: CrowdVisit, now: dt.datetime) -> Membership:
    mine = list(Membership.objects.of(known.user))
    membership = next((each for each in mine if each.project_id == known.project_id), None)
    is_plain = known.user.is_active and not known.user.is_staff and {each.role for each in mine} <= {Role.ANNOTATOR}
    if membership is None or not is_plain:
        raise WorkerCannotReturn
    WorkerId.objects.filter(pk=known.pk).update(study=arrival.study, session=arrival.session, last_came_at=now)
    return membership


def _admit_new(invitation: Invitation, arrival: CrowdVisit, now: dt.datetime) -> Membership:
    invitations.count_use(invitation=invitation, now=now)
    user = _create_account(now)
    membership = members.add_member(project=invitation.project, user=user, role=Role.ANNOTATOR, now=now)
    WorkerId.objects.create(
        project=invitation.project, user=user, first_came_at=now, last_came_at=now, **arrival._asdict()
    )
    # The log is for ever, so it does not hold the worker id.
    audit_log.log_event(
        what="invitation.accepted",
        by=user,
        now=now,
        project=invitation.project_id,
        subject=f"invitation:{invitation.pk}",
        detail={"role": Role.ANNOTATOR.value, "by_worker_id": True},
    )
    return membership


def _create_account(now: dt.datetime) -> User:
    """Its name says nothing of the person, and its only way in is the link."""
    return users.create_user(username=f"worker-{secrets.token_hex(6)}", now=now)
