"""`manage.py restore FILE [--yes]`: replace the database with a backup."""

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

_DATABASE_NOT_EMPTY = gettext_lazy(
    "The database is not empty. Restoring replaces all its data with the backup from %(made_at)s. Back up"
    " the current data first, then run the command again with --yes."
)


class Command(BaseCommand):
    help = "Replace the database with a backup. Stop the platform first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="backup file that the command `backup` wrote")
        parser.add_argument("--yes", action="store_true", help="replace existing data")

    def handle(self, *args: Any, file: Path, yes: bool, **options: Any) -> None:
        try:
            facts = backup.read_backup(file)
            if backup.has_users() and not yes:
                raise CommandError(_DATABASE_NOT_EMPTY % facts)
            with _platform_stopped():
                backup.restore_backup(file=file, now=timezone.now())
        except (backup.Unusable, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_("Restored the backup from %(made_at)s.") % facts)
        for line in backup.describe_missing_files():
            self.stderr.write(line)


@contextmanager
def _platform_stopped() -> Iterator[None]:
    """Hold the supervisor's lock, so that the platform cannot start during the restore."""
    if not settings.EMBEDDED:
        yield
        return
    with (settings.DATA_DIR / "supervisor.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CommandError(_("The platform is running. Stop ./run first.")) from error
        yield
