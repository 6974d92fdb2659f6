"""Brings a file of traces into a project: `manage.py import_traces FILE --project SLUG`."""

import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs import yielding
from jobs.failures import Failed
from jobs.runner import Progress
from labeling import projects
from labeling.importing import bringing, fetching, files, lying, telling
from labeling.importing.attributing import LABELS
from labeling.importing.privacy import PRIVATE
from labeling.importing.readers import formats
from labeling.importing.report import Report
from labeling.importing.segmenters import NAMES
from labeling.models import Project
from labeling.models.problem import SourcePurpose
from labeling.models.quality import GoldUse


class Command(BaseCommand):
    help = "Brings a file of traces into a project, which is made when it does not exist."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("file", help="a path, or the address of an object: s3://bucket/name")
        add("--project", required=True, metavar="SLUG")
        add("--format", default="auto", choices=["auto", *formats.FORMATS])
        add("--segmenter", default="", choices=["", *NAMES], help="cuts texts that are not in steps yet")
        add("--labels", default="judgments", choices=LABELS, help="what the ratings in the file are")
        add("--labels-by", default="", metavar="NAME", help="who rated: for human, monte_carlo and judge")
        add("--gold-use", default=GoldUse.HIDDEN, choices=GoldUse.values, help="what gold is for")
        add("--purpose", default=SourcePurpose.RATE, choices=SourcePurpose.values, help="benchmark: never trained on")
        add("--private", default="count", choices=PRIVATE, help="what looks like an address, a number or a key")
        add("--licence", default="", help="the licence of the file")
        add("--source", default="", metavar="TEXT", help="where the file comes from")
        add("--lenient", action="store_true", help="leave bad lines out instead of refusing the file")
        add("--bad-lines", type=Path, metavar="FILE", help="write all bad lines into a CSV file")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = self._bring_in(options)
        except bringing.HasBadLines as error:
            self._say_bad_lines(error.report)
            raise CommandError(str(error).partition(": ")[0]) from error
        except (Failed, files.Unreadable, formats.UnknownFormat) as error:
            raise CommandError(str(error)) from error
        self._say_bad_lines(report)
        for table in telling.told(report):
            self.stdout.write(self.style.MIGRATE_HEADING(table.name))
            for figure in table.figures:
                self.stdout.write(f"{figure.value:>16}  {figure.name}")

    def _bring_in(self, options: dict[str, Any]) -> Report:
        now = timezone.now()
        slug = options["project"]
        choices = _choices(options)
        choices.check()
        project = Project.objects.filter(slug=slug).first() or projects.create(name=slug, slug=slug, by=None, now=now)
        asked = bringing.prepare(project=project, path=self._file(options["file"]), choices=choices, now=now)
        progress = Progress(0)
        for chunk in bringing.bring_in(asked, checkpoint={}, by=None, bad_lines_to=options["bad_lines"]):
            if isinstance(chunk, Progress):
                continue
            began = time.perf_counter()
            with transaction.atomic():
                progress = chunk(timezone.now())
            self._show(progress)
            yielding.pause(time.perf_counter() - began, now=timezone.now())
        return bringing.report_of(progress)

    def _file(self, named: str) -> Path:
        """Whoever may use this command may read what the server may read."""
        if not named.startswith(lying.SCHEMES):
            return Path(named).absolute()
        fetching_it = fetching.fetch(named)
        while True:
            try:
                next(fetching_it)
            except StopIteration as end:
                return Path(end.value)

    def _show(self, progress: Progress) -> None:
        if self.stderr.isatty():
            share = 100 * progress.done // max(progress.total or 0, 1)
            self.stderr.write(f"\r{progress.done:,} / {progress.total or 0:,} ({share} %)", ending="")

    def _say_bad_lines(self, report: Report) -> None:
        for line in report.bad_lines[:20]:
            self.stderr.write(str(line))
        if report.bad > 20:
            self.stderr.write(_("… and %(n)s more") % {"n": report.bad - 20})


def _choices(options: dict[str, Any]) -> bringing.Choices:
    return bringing.Choices(
        format=options["format"],
        segmenter=options["segmenter"],
        labels=options["labels"],
        labels_by=options["labels_by"],
        gold_use=str(options["gold_use"]),
        purpose=str(options["purpose"]),
        private=options["private"],
        licence=options["licence"],
        statement=options["source"],
        is_lenient=options["lenient"],
    )
