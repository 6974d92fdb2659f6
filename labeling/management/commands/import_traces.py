"""Brings a file of traces into a project: `manage.py import_traces FILE --project SLUG`."""

import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs import yielding
from jobs.runner import Progress
from labeling import projects
from labeling.importing import bringing, files
from labeling.importing.readers import formats
from labeling.importing.report import Report
from labeling.models import Project


class Command(BaseCommand):
    help = "Brings a file of traces into a project, which is made when it does not exist."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--format", default="auto", choices=["auto", *formats.FORMATS])
        parser.add_argument("--labels", default="judgments", choices=["judgments", "none"])
        parser.add_argument("--lenient", action="store_true", help="leave bad lines out instead of refusing the file")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = self._bring_in(options)
        except (files.Unreadable, formats.UnknownFormat) as error:
            raise CommandError(str(error)) from error
        except bringing.HasBadLines as error:
            self._say_bad_lines(error.report)
            raise CommandError(str(error).partition(": ")[0]) from error
        self._say_bad_lines(report)
        self._say(report)

    def _bring_in(self, options: dict[str, Any]) -> Report:
        now = timezone.now()
        slug = options["project"]
        project = Project.objects.filter(slug=slug).first() or projects.create(name=slug, slug=slug, by=None, now=now)
        asked = bringing.prepare(
            project=project,
            path=options["file"],
            format=options["format"],
            labels=options["labels"],
            is_lenient=options["lenient"],
            now=now,
        )
        progress = Progress(0)
        for chunk in bringing.bring_in(asked, checkpoint={}, by=None):
            if isinstance(chunk, Progress):
                continue
            began = time.perf_counter()
            with transaction.atomic():
                progress = chunk(timezone.now())
            self._show(progress)
            yielding.pause(time.perf_counter() - began, now=timezone.now())
        return bringing.report_of(progress)

    def _show(self, progress: Progress) -> None:
        if self.stderr.isatty():
            share = 100 * progress.done // max(progress.total or 0, 1)
            self.stderr.write(f"\r{progress.done:,} / {progress.total or 0:,} ({share} %)", ending="")

    def _say_bad_lines(self, report: Report) -> None:
        for line in report.bad_lines[:20]:
            self.stderr.write(str(line))
        if report.bad > 20:
            self.stderr.write(_("… and %(n)s more") % {"n": report.bad - 20})

    def _say(self, report: Report) -> None:
        rows = [
            (_("records"), report.records),
            (_("bad lines left out"), report.bad),
            (_("new problems"), report.problems_added),
            (_("new traces"), report.traces_added),
            (_("new submissions"), report.submissions_added),
            (_("traces queued"), report.queued),
            (_("records kept with their own bytes"), report.residues),
            (_("steps written by raters"), report.written_steps),
            *((f"finish reason {name}", count) for name, count in sorted(report.finish_reasons.items())),
            *((f"rating {name}", count) for name, count in sorted(report.ratings.items())),
        ]
        for name, count in rows:
            self.stdout.write(f"{count:>12,}  {name}")
