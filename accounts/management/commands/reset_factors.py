"""`manage.py reset_factors USER`: remove the second factors of a user who lost them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from accounts import factors
from accounts.management.commands.login_link import find_user


class Command(BaseCommand):
    help = "Remove the authenticator app, passkeys and recovery codes of a user, and end their sessions."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username or email address")

    def handle(self, *args: Any, user: str, **options: Any) -> None:
        factors.reset_factors(user=find_user(user), by=None, now=timezone.now())
        self.stdout.write(f"Two-step login of {user} was reset. They log in with the password alone.")
