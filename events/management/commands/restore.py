"""`manage.py restore FILE [--yes]`: the database as it was when the backup was made."""

import fcntl
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from events import backup

_THERE_IS_DATA = gettext_lazy(
    "There is data here, and restoring replaces all of it by what stood in the backup of %(made_at)s."
    " Back it up, then say --yes."
)


class Command(BaseCommand):
    help = "Replaces the whole database by a backup. Stop the platform first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="what `backup` wrote")
        parser.add_argument("--yes", action="store_true", help="replace the data that is there")

    def handle(self, *args: Any, file: Path, yes: bool, **options: Any) -> None:
        try:
            facts = backup.read_backup(file)
            if backup.has_users() and not yes:
                raise CommandError(_THERE_IS_DATA % facts)
            with _platform_stopped():
                backup.restore_backup(file=file, now=timezone.now())
        except (backup.Unusable, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_("Restored what stood here on %(made_at)s.") % facts)


@contextmanager
def _platform_stopped() -> Iterator[None]:
    """On one machine the supervisor holds its data folder: hold it instead, so that nobody works on it meanwhile."""
    if not settings.EMBEDDED:
        yield
        return
    with (settings.DATA_DIR / "supervisor.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CommandError(_("The platform is running on this data: stop ./run first.")) from error
        yield
