"""`manage.py verify_backup FILE`: read a whole backup without restoring it."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from events import backup


class Command(BaseCommand):
    help = "Check that this version can read and restore a backup. Changes nothing. Exit code 1 if it cannot."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="backup file that the command `backup` wrote")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            facts = backup.verify_backup(file)
        except (backup.Unusable, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_("The backup from %(made_at)s is complete and can be restored.") % facts)
