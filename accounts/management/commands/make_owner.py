"""`manage.py make_owner USER`: create an account that may create projects, and print a link that logs it in."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse
from django.utils import timezone

from accounts import tokens, users


class Command(BaseCommand):
    help = "Create an account that can create projects, and print a single-use login link for it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username of the new account")
        parser.add_argument("--email", default="", help="email address of the new account")
        parser.add_argument("--origin", default=settings.ORIGIN, help="URL of the platform (%(default)s)")

    def handle(self, *args: Any, user: str, email: str, origin: str, **options: Any) -> None:
        now = timezone.now()
        try:
            owner = users.create_user(username=user, email=email, is_staff=True, now=now)
        except users.NameIsTaken as error:
            raise CommandError(f"{error} To log in to an existing account, run: manage.py login_link {user}") from error
        token = tokens.create_login_link(user=owner, by=None, now=now)
        self.stdout.write(origin.rstrip("/") + reverse("login_link", args=[token]))
