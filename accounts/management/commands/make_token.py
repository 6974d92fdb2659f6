"""`manage.py make_token USER SCOPE …`: print an API token with which a program acts for USER."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts import tokens
from accounts.management.commands.login_link import find_user
from accounts.models import Scope


class Command(BaseCommand):
    help = "Print a new API token that lets a program act for a user. Only its hash is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username or email address")
        parser.add_argument("scopes", nargs="+", choices=Scope.values, metavar="scope", help=", ".join(Scope.values))
        parser.add_argument("--name", default="command line", help="shown on the user's page (%(default)s)")
        parser.add_argument("--days", type=int, default=90, help="days until the token expires (%(default)s)")

    def handle(self, *args: Any, user: str, scopes: list[str], name: str, days: int, **options: Any) -> None:
        if days < 1 or (settings.MAX_TOKEN_DAYS and days > settings.MAX_TOKEN_DAYS):
            raise CommandError(f"--days {days}: must be between 1 and STEPMARK_MAX_TOKEN_DAYS.")
        _token, secret = tokens.create_api_token(
            user=find_user(user), name=name[:100], scopes=set(scopes), lasts=dt.timedelta(days=days), now=timezone.now()
        )
        self.stdout.write(secret)
