"""Create users, set their passwords and erase them. The only module that writes User rows."""

import datetime as dt
import json
from functools import partial

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import sessions, tasks, tokens
from accounts.models import LinkPurpose, User
from accounts.security_log import log_account_event
from events import revocations


class NameIsTaken(Exception):
    """Another account has this username or email address; `field` is "username" or "email"."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def create_user(
    *,
    username: str,
    now: dt.datetime,
    password: str | None = None,
    email: str = "",
    name: str = "",
    is_staff: bool = False,
    is_worker: bool = False,
) -> User:
    """Create an account. Without a password, its user logs in through a link."""
    username, email = username.strip(), email.strip()
    _check_names_are_free(username, email)
    try:
        with transaction.atomic():
            user = User.objects.create_user(
                username,
                email=email,
                password=password,
                name=name.strip(),
                is_staff=is_staff,
                is_worker=is_worker,
                date_joined=now,
            )
            log_account_event(what="created", user=user, by=None, now=now, is_operator=is_staff)
            return user
    except IntegrityError:
        # A concurrent request created an account with the same name.
        _check_names_are_free(username, email)
        raise


def set_password(
    *, user: User, password: str, now: dt.datetime, is_reset: bool = False, revokes_tokens: bool = False
) -> None:
    """Set a password. This ends all sessions of the user and revokes their unused links; a reset also revokes their
    API tokens, because someone else may know the old password."""
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        tokens.revoke_links(user=user, now=now)
        sessions.delete_sessions(user=user)
        if is_reset or revokes_tokens:
            tokens.revoke_all_api_tokens(user=user, now=now)
        what = "password_reset" if is_reset else "password_changed"
        log_account_event(what=what, user=user, by=user, now=now)
        revocations.note_after_commit(what="password", account=compute_digest(user), now=now)
        transaction.on_commit(partial(tasks.request_account_mail, user=user, what=what))


def change_details(*, user: User, name: str, email: str, now: dt.datetime) -> None:
    """Set a user's own name and email address. A new address is reported to the old one. Raises NameIsTaken."""
    name, email, before = name.strip(), email.strip(), user.email
    if email.lower() != before.lower():
        _check_email_is_free(email)
    with transaction.atomic():
        for field, what, value in (("name", "details_changed", name), ("email", "email_changed", email)):
            if value != getattr(user, field):
                setattr(user, field, value)
                log_account_event(what=what, user=user, by=user, now=now)
        user.save(update_fields=["name", "email"])
        if email != before:
            for address in filter(None, (before, email)):
                notify = partial(tasks.request_account_mail, user=user, what="email_changed", address=address)
                transaction.on_commit(notify)


def set_operator(*, user: User, is_operator: bool, now: dt.datetime) -> None:
    """Set whether a user may create projects, according to their single sign-on groups."""
    if user.is_staff != is_operator:
        with transaction.atomic():
            user.is_staff = is_operator
            user.save(update_fields=["is_staff"])
            log_account_event(what="roles_synchronized", user=user, by=None, now=now, is_operator=is_operator)
            if not is_operator:
                revocations.note_after_commit(what="operator", account=compute_digest(user), now=now)


def revoke_password(*, user: User, now: dt.datetime) -> None:
    """Take away a password that was valid when a restored backup was made. The user needs a link to set a new one."""
    with transaction.atomic():
        user.set_unusable_password()
        user.save(update_fields=["password"])
        log_account_event(what="password_revoked", user=user, by=None, now=now)


def compute_digest(user: User) -> str:
    return revocations.compute_account_digest(user_id=user.pk, joined_at=user.date_joined)


def set_password_by_link(*, token: str, password: str, now: dt.datetime) -> User:
    """Use the link up and set the password, in one transaction."""
    with transaction.atomic():
        user = tokens.use_link(token=token, purpose=LinkPurpose.NEW_PASSWORD, now=now)
        set_password(user=user, password=password, now=now, is_reset=True)
    return user


def save_work_keys(*, user: User, keys: dict[str, str]) -> None:
    """Save the keys that differ from the defaults; an empty dict restores the defaults."""
    user.work_keys = json.dumps(keys) if keys else ""
    user.save(update_fields=["work_keys"])


def save_break_minutes(*, user: User, minutes: int) -> None:
    user.break_minutes = minutes
    user.save(update_fields=["break_minutes"])


def erase_user(*, user: User, now: dt.datetime) -> None:
    """Remove the personal data of the row. It stays, because labels refer to it. `privacy.erasure` removes the rest."""
    with transaction.atomic():
        user.username, user.email, user.name, user.work_keys = f"erased-{user.pk}", "", "", ""
        user.is_active = user.is_staff = user.is_superuser = False
        user.last_login, user.erased_at = None, now
        user.set_unusable_password()
        user.save()


def _check_names_are_free(username: str, email: str) -> None:
    if User.objects.filter(username__iexact=username).exists():
        raise NameIsTaken("username", _("The username “%(name)s” is taken. Choose another.") % {"name": username})
    _check_email_is_free(email)


def _check_email_is_free(email: str) -> None:
    if email and User.objects.filter(email__iexact=email).exists():
        raise NameIsTaken("email", _("An account with this email address already exists. Log in instead."))
