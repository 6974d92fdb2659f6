"""Writes what was judged in a project into files: `manage.py build_snapshot --project SLUG --out DIR`."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _

from exports.formats import FORMATS
from labeling import manifest
from labeling.manifest import Filters
from labeling.models import Manifest, Project


class Command(BaseCommand):
    help = "Freezes the submissions of a project and writes them into files. `archive` holds all of them as they are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--format", default="prm800k", choices=list(FORMATS))
        parser.add_argument("--purpose", default="archive", choices=["archive"])
        parser.add_argument("--out", required=True, type=Path, metavar="DIR")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(_("There is no project %(slug)s.") % {"slug": options["project"]})
        frozen = manifest.freeze(
            project=project, filters=Filters(), purpose=options["purpose"], now=timezone.now(), by=None
        )
        folder: Path = options["out"]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{project.slug}.{options['format']}.jsonl"
        described = self._write(frozen, options["format"], path)
        (folder / "manifest.json").write_text(json.dumps(described, indent=2) + "\n")
        self.stdout.write(f"{path}: {described['rows']:,} rows, sha256 {described['sha256']}")

    def _write(self, frozen: Manifest, format: str, path: Path) -> dict[str, Any]:
        """Under a name of its own until it is whole: nobody takes half a file for a snapshot."""
        digest, rows = hashlib.sha256(), 0
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            for line in FORMATS[format](manifest.stream(frozen)):
                file.write(line)
                digest.update(line)
                rows += 1
            os.fsync(file.fileno())
        unfinished.replace(path)
        return {
            "manifest": frozen.pk,
            "purpose": frozen.purpose,
            "format": format,
            "submissions": frozen.n_rows,
            "rows": rows,
            "file": path.name,
            "sha256": digest.hexdigest(),
            "filters": frozen.filters,
            "code_version": frozen.code_version,
        }
