"""Makes users, sets their passwords and erases them. Alone writes User rows."""

import datetime as dt
import json

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import login_links
from accounts.models import LinkPurpose, User


class NameIsTaken(Exception):
    """Another account has this user name or this e-mail address. `field` says which."""

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
) -> User:
    """A new account. Without a password its only way in is a link."""
    username, email = username.strip(), email.strip()
    _check_names_are_free(username, email)
    try:
        with transaction.atomic():
            return User.objects.create_user(
                username, email=email, password=password, name=name.strip(), is_staff=is_staff, date_joined=now
            )
    except IntegrityError:
        # Two people asked for the same name at the same moment; the other was first.
        _check_names_are_free(username, email)
        raise


def set_password(*, user: User, password: str, now: dt.datetime) -> None:
    """A new password. It ends every session of this user, and every link that was still open."""
    user.set_password(password)
    user.save(update_fields=["password"])
    login_links.revoke_links(user=user, now=now)


def set_password_by_link(*, token: str, password: str, now: dt.datetime) -> User:
    """Use a link up and set the password that it was made for: both or neither."""
    with transaction.atomic():
        user = login_links.use_link(token=token, purpose=LinkPurpose.NEW_PASSWORD, now=now)
        set_password(user=user, password=password, now=now)
    return user


def save_work_keys(*, user: User, keys: dict[str, str]) -> None:
    """The keys that this person likes on the work page; none for those that it comes with."""
    user.work_keys = json.dumps(keys) if keys else ""
    user.save(update_fields=["work_keys"])


def erase_user(*, user: User, now: dt.datetime) -> None:
    """Take away everything that names the person or lets them in. The row stays: labels keep their source."""
    with transaction.atomic():
        user.username, user.email, user.name = f"erased-{user.pk}", "", ""
        user.is_active = user.is_staff = user.is_superuser = False
        user.last_login, user.erased_at = None, now
        user.set_unusable_password()
        user.save()
        login_links.revoke_links(user=user, now=now)
        EmailAddress.objects.filter(user=user).delete()
        Authenticator.objects.filter(user=user).delete()


def _check_names_are_free(username: str, email: str) -> None:
    if User.objects.filter(username__iexact=username).exists():
        raise NameIsTaken("username", _("The user name “%(name)s” is taken. Choose another.") % {"name": username})
    if email and User.objects.filter(email__iexact=email).exists():
        raise NameIsTaken("email", _("This e-mail address has an account already. Log in with it instead."))
