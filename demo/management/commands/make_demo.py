"""`manage.py make_demo`: create the demo projects and print a login link for each of their three people."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.urls import reverse
from django.utils import timezone

from accounts import tokens
from demo import make_projects

LINKS_LAST = dt.timedelta(hours=12)


class Command(BaseCommand):
    help = "Create the demo projects if they are missing, and print a login link for each of their three people."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--origin", default=settings.ORIGIN, help="base URL of the platform (default: %(default)s)")

    def handle(self, *args: Any, origin: str, **options: Any) -> None:
        now = timezone.now()
        demo = make_projects.make_demo(now=now)
        for user in (demo.lead, demo.annotator, demo.engineer):
            token = tokens.create_login_link(user=user, by=None, now=now, lasts=LINKS_LAST)
            self.stdout.write(f"{user.username}: {origin.rstrip('/')}{reverse('login_link', args=[token])}")
