"""`manage.py backup FILE`: back up the database into one file, while people work."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from events import backup

_OTHER_VERSION = gettext_lazy(
    "The database belongs to another version of Stepmark: %(missing)s is missing. The backup is complete, but only that"
    " version can restore it."
)


class Command(BaseCommand):
    help = "Back up the database into one file. People can continue to work."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the file to write; an existing file is replaced")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            facts = backup.create_backup(file=file, now=timezone.now())
        except (backup.Unusable, OSError) as error:
            raise CommandError(str(error)) from error
        message = _("Backed up to %(file)s: %(size).1f MB, %(events)d events, %(submissions)d submissions.")
        rows = facts["rows"]
        numbers = {"events": rows.get("events_event", 0), "submissions": rows.get("labeling_submission", 0)}
        self.stdout.write(message % {"file": file, "size": file.stat().st_size / 1e6, **numbers})
        if missing := backup.find_missing_column(facts["columns"]):
            self.stderr.write(_OTHER_VERSION % {"missing": missing})
