"""Repeat in a restored database the revocations since the backup was made.

Sessions, login links, invitations and API tokens are not in a backup, so all of them are revoked by a restore.
"""

import datetime as dt

from allauth.mfa.models import Authenticator

from accounts import factors, single_sign_on, users
from accounts.models import User
from accounts.security_log import log_account_event
from events import audit_log, revocations
from people import members
from people.models import Membership, Role
from privacy import erasure


def repeat_revocations(*, now: dt.datetime, made_at: dt.datetime) -> None:
    accounts = {users.compute_digest(user): user for user in User.objects.filter(erased_at=None)}
    n_memberships = 0
    for line in revocations.read_revocations(what="membership", since=made_at):
        if user := accounts.get(line["account"]):
            n_memberships += _lower_membership(user, line["project"], line["role"], now)
    changed = {each["account"] for each in revocations.read_revocations(what="password", since=made_at)}
    passwords = [accounts[account] for account in changed & accounts.keys()]
    for user in passwords:
        users.revoke_password(user=user, now=now)
    removals = {each["account"]: each for each in revocations.read_revocations(what="factors", since=made_at)}
    n_factors = sum(
        _remove_factors(accounts[account], line["remaining"], now)  # the last line of each account
        for account, line in removals.items()
        if account in accounts
    )
    disconnected = {each["account"] for each in revocations.read_revocations(what="identity", since=made_at)}
    n_identities = sum(
        single_sign_on.repeat_removal(user=accounts[account], now=now) for account in disconnected & accounts.keys()
    )
    lowered = {each["account"] for each in revocations.read_revocations(what="operator", since=made_at)}
    operators = [accounts[account] for account in lowered & accounts.keys() if accounts[account].is_staff]
    for user in operators:
        users.set_operator(user=user, is_operator=False, now=now)
    noted = {each["account"] for each in revocations.read_revocations(what="erasure")}
    erased = [accounts[account] for account in noted & accounts.keys()]
    for user in erased:
        erasure.erase_person(user=user, by=None, now=now)
    detail = {
        "memberships": n_memberships,
        "passwords": len(passwords),
        "factors": n_factors,
        "identities": n_identities,
        "operators": len(operators),
        "erasures": len(erased),
    }
    if any(detail.values()):
        audit_log.log_event(what="backup.revocations_repeated", by=None, now=now, detail=detail)


def _lower_membership(user: User, project_id: int, role: str, now: dt.datetime) -> int:
    """Return how many memberships have changed."""
    membership = Membership.objects.active().filter(project=project_id, user=user).select_related("project").first()
    if membership is None or membership.role == role:
        return 0
    members.repeat_change(membership=membership, role=Role(role) if role else None, now=now)
    return 1


def _remove_factors(user: User, remaining: list[int], now: dt.datetime) -> int:
    """Remove the second factors that were removed since the backup, and return how many.

    If others had replaced them, which the backup lacks, the password alone must not suffice: it is revoked."""
    removed: int = Authenticator.objects.filter(user=user).exclude(pk__in=remaining).delete()[0]
    if removed:
        log_account_event(what="factors_reset", user=user, by=None, now=now)
        if remaining and not factors.has_second_factor(user) and user.has_usable_password():
            users.revoke_password(user=user, now=now)
    return removed
