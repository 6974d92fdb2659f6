"""Users, sessions, single-use links and API tokens. Roles in projects are in `people`.

`accounts.users` writes users, and `accounts.tokens` links and API tokens."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import PermissionsMixin, UserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class User(AbstractBaseUser, PermissionsMixin):
    """A person with an account. Crowd annotators have no email address: they are identified by a worker ID."""

    username = models.CharField(_("username"), max_length=150, unique=True, validators=[UnicodeUsernameValidator()])
    email = models.EmailField(_("email address"), blank=True)
    name = models.CharField(_("name"), max_length=150, blank=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    # Comes from a crowd platform with an ID. Such an account has no password, no reset link and no API tokens.
    is_worker = models.BooleanField(default=False)
    date_joined = models.DateTimeField(default=timezone.now)
    work_keys = models.TextField(blank=True)  # JSON: action -> key, for keys that differ from the defaults
    # The work page suggests a break after this many minutes of work; 0: never.
    break_minutes = models.PositiveSmallIntegerField(default=50)
    # A user is never deleted, because labels and events refer to the row. Erasing removes all personal data.
    erased_at = models.DateTimeField(null=True, blank=True)

    objects = UserManager()

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(Lower("username"), name="a_user_name_is_one_in_any_case"),
            models.UniqueConstraint(
                Lower("email"), condition=~models.Q(email=""), name="an_email_address_belongs_to_one_user"
            ),
            models.CheckConstraint(
                condition=models.Q(erased_at=None) | models.Q(email="", name="", is_active=False),
                name="who_is_erased_has_no_name_and_no_way_in",
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.username


class Session(AbstractBaseSession):
    """Django's session with its user, and what the user sees in the list of their sessions."""

    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    # The last login or confirmation that it is the user; each of them starts a new session.
    authenticated_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(default=timezone.now)  # accurate to some minutes
    address = models.GenericIPAddressField(null=True, blank=True)
    browser = models.CharField(max_length=300, blank=True)

    @classmethod
    def get_session_store_class(cls) -> Any:
        from accounts.sessions import SessionStore

        return SessionStore


class LinkPurpose(models.TextChoices):
    LOGIN = "login", _("log in")
    NEW_PASSWORD = "new_password", _("set a new password")


class LoginLink(models.Model):
    """A single-use link. Only the hash of its token is stored, so a copy of the database cannot be used to log in."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_links")
    purpose = models.CharField(max_length=12, choices=LinkPurpose)
    token_digest = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(expires_at__gt=models.F("made_at")), name="a_login_link_expires_after_it_was_made"
            ),
            models.CheckConstraint(
                condition=models.Q(used_at=None) | models.Q(withdrawn_at=None), name="what_was_used_is_not_withdrawn"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} link {self.pk}"


class Scope(models.TextChoices):
    """What an API token permits. The role of its user in the project limits it further."""

    READ = "read", _("Read projects, imports, snapshots and jobs")
    BRING_IN = "bring_in", _("Import traces")
    TAKE_OUT = "take_out", _("Build and download snapshots")
    SCORE = "score", _("Upload scores and query the current PRM")
    JUDGE = "judge", _("Add and run judges")
    STEER = "steer", _("Tag, order, assign and withdraw traces")
    GUIDE = "guide", _("Change the guideline and what annotators are asked")
    AUDIT = "audit", _("Read the security log (operators only)")


class ApiToken(models.Model):
    """A token with which a program acts for a user. Only its hash is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(_("name"), max_length=100)
    scopes = models.JSONField(default=list)
    project = models.BigIntegerField(null=True, blank=True)  # no foreign key: projects are above; null for all
    token_digest = models.CharField(max_length=64, unique=True)
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)  # last use, accurate to the hour
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=~models.Q(scopes=[]), name="a_token_lets_something_be_done"),
            models.CheckConstraint(
                condition=models.Q(expires_at=None) | models.Q(expires_at__gt=models.F("made_at")),
                name="a_token_expires_after_it_was_made",
            ),
        ]

    def __str__(self) -> str:
        return self.name
