"""`manage.py login_link USER`: print a single-use link that logs USER in."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse
from django.utils import timezone

from accounts import tokens
from accounts.models import User


class Command(BaseCommand):
    help = "Print a link that logs a user in. It works once, and for 15 minutes by default."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username or email address")
        parser.add_argument("--origin", default=settings.ORIGIN, help="URL of the platform (%(default)s)")
        parser.add_argument("--minutes", type=int, default=15, help="minutes until the link expires (%(default)s)")

    def handle(self, *args: Any, user: str, origin: str, minutes: int, **options: Any) -> None:
        if minutes < 1:
            raise CommandError(f"--minutes {minutes}: must be at least 1.")
        token = tokens.create_login_link(
            user=find_user(user), by=None, now=timezone.now(), lasts=dt.timedelta(minutes=minutes)
        )
        self.stdout.write(origin.rstrip("/") + reverse("login_link", args=[token]))


def find_user(name: str) -> User:
    user = (
        User.objects.filter(username=name).first() or User.objects.filter(email__iexact=name).exclude(email="").first()
    )
    if user is None:
        raise CommandError(f"No user {name!r}. Give a username or an email address.")
    if not user.is_active:
        raise CommandError(f"The account of {name!r} is inactive and cannot log in.")
    return user
