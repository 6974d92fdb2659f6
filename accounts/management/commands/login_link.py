"""`manage.py login_link USER`: prints a link that logs USER in, once."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse
from django.utils import timezone

from accounts import login_links
from accounts.models import User


class Command(BaseCommand):
    help = "Print a link that logs a user in. It works once, and for a quarter of an hour unless told otherwise."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="user name or e-mail address")
        parser.add_argument("--origin", default=settings.ORIGIN, help="where the platform is reached (%(default)s)")
        parser.add_argument("--minutes", type=int, default=15, help="how long the link works (%(default)s)")

    def handle(self, *args: Any, user: str, origin: str, minutes: int, **options: Any) -> None:
        if minutes < 1:
            raise CommandError(f"--minutes {minutes}: a link works for one minute at least.")
        token = login_links.create_login_link(
            user=_find_user(user), by=None, now=timezone.now(), lasts=dt.timedelta(minutes=minutes)
        )
        self.stdout.write(origin.rstrip("/") + reverse("login_link", args=[token]))


def _find_user(name: str) -> User:
    user = (
        User.objects.filter(username=name).first() or User.objects.filter(email__iexact=name).exclude(email="").first()
    )
    if user is None:
        raise CommandError(f"There is no user {name!r}. Write a user name or an e-mail address.")
    if not user.is_active:
        raise CommandError(f"{name!r} may not log in: the account is inactive.")
    return user
