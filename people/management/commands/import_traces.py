"""Brings a file of traces into a project: `manage.py import_traces FILE --project SLUG`.

Exit codes: 0 it is in, 1 it is refused (why is said), 2 the command was not understood, 130 stopped by Ctrl-C.
"""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from formats import catalog, input_files
from formats.privacy import PRIVACY_MODES
from formats.segmenters import SEGMENTER_NAMES
from jobs.failures import JobFailed
from jobs.runner import JobProgress
from jobs.terminal import ProgressBar
from labeling.models import Project
from labeling.models.gold import GoldUse
from labeling.models.problem import SourcePurpose
from labeling.projects import lifecycle
from labeling.traces import import_job, import_report, locations, object_store, scan
from labeling.traces.import_report import ImportReport
from labeling.traces.labelers import LABELS_KINDS
from people import members, owned_projects
from people.models import Membership, Role

STOPPED = 130  # what shells say of a program that was interrupted


class Command(BaseCommand):
    help = (
        "Brings a file of traces into a project, which is made when it does not exist. Running it again adds nothing. "
        "Exit codes: 0 it is in, 1 it is refused, 2 the command was not understood, 130 stopped by Ctrl-C."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("file", help="a path, also of a .gz or .zst, or the address of an object: s3://bucket/name")
        add("--project", required=True, metavar="SLUG", help="the name of the project in its address")
        add("--by", metavar="USER", help="who brings it in: owns the project where that is new")
        add(
            "--format",
            default="auto",
            choices=["auto", *catalog.INPUT_FORMATS],
            help="told by the file where it is auto",
        )
        add("--segmenter", default="", choices=["", *SEGMENTER_NAMES], help="cuts texts that are not in steps yet")
        add("--labels", default="judgments", choices=LABELS_KINDS, help="what the ratings in the file are")
        add("--labels-by", default="", metavar="NAME", help="who rated: for human, monte_carlo and judge")
        add("--gold-use", default=GoldUse.HIDDEN, choices=GoldUse.values, help="what gold is for")
        add("--purpose", default=SourcePurpose.RATE, choices=SourcePurpose.values, help="benchmark: never trained on")
        add("--private", default="count", choices=PRIVACY_MODES, help="what looks like an address, a number or a key")
        add("--licence", default="", help="the licence of the file")
        add("--source", default="", metavar="TEXT", help="where the file comes from")
        add("--lenient", action="store_true", help="leave bad lines out instead of refusing the file")
        add("--bad-lines", type=Path, metavar="FILE", help="write all bad lines into a CSV file")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        self._progress = JobProgress(0)
        try:
            report = self._bring_in(options, bar)
        except KeyboardInterrupt:
            bar.clear()
            raise CommandError(self._stopped(), returncode=STOPPED) from None
        except import_job.FileHasBadLines as error:
            bar.clear()
            self._say_bad_lines(error.report)
            raise CommandError(str(error).partition(": ")[0]) from error
        except (JobFailed, input_files.UnreadableFile, catalog.UnknownFormat) as error:
            bar.clear()
            raise CommandError(str(error)) from error
        bar.clear()
        self._say_bad_lines(report)
        for table in import_report.make_report_tables(report):
            self.stdout.write(self.style.MIGRATE_HEADING(table.name))
            for figure in table.figures:
                self.stdout.write(f"{figure.value:>16}  {figure.name}")

    def _bring_in(self, options: dict[str, Any], bar: ProgressBar) -> ImportReport:
        now = timezone.now()
        choices = _choices(options)
        choices.check()
        path = self._file(options["file"], bar)
        with input_files.open_file(path):
            scan.resolve_format(path, named=choices.format)  # before a project is made for a file that nobody can read
        by = _user(options["by"])
        project = self._project(options["project"], by, now)
        asked = import_job.prepare_import(project=project, path=path, choices=choices, now=now)
        for chunk in import_job.run_import(asked, checkpoint={}, by=by, bad_lines_path=options["bad_lines"]):
            if isinstance(chunk, JobProgress):
                _show_look(bar, chunk.result or {})
                continue
            with transaction.atomic():
                self._progress = chunk(timezone.now())
            bar.show(_("Bringing in:"), self._progress.done, self._progress.total)
        return import_job.report_from_progress(self._progress)

    def _project(self, slug: str, by: User | None, now: dt.datetime) -> Project:
        """The project of that address, or a new one. One that belongs to nobody is on nobody's pages."""
        project = Project.objects.filter(slug=slug).first()
        if project is None and by is not None:
            return owned_projects.create_owned_project(name=slug, slug=_checked(slug), by=by, now=now)
        if project is None:
            project = lifecycle.create_project(name=slug, slug=_checked(slug), by=None, now=now)
        if not Membership.objects.active().filter(project=project).exists():
            if by is None:
                self.stderr.write(
                    _("The project %(slug)s belongs to nobody, so no page shows it: --by USER makes you its owner.")
                    % {"slug": slug}
                )
            else:
                members.add_member(project=project, user=by, role=Role.OWNER, now=now)
        return project

    def _file(self, named: str, bar: ProgressBar) -> Path:
        """Whoever may use this command may read what the server may read."""
        if not named.startswith(locations.STORE_SCHEMES):
            return Path(named).absolute()
        fetching_it = object_store.fetch_object(named)
        while True:
            try:
                told = next(fetching_it).result or {}
                bar.show(_("Fetching:"), told.get("fetched", 0), told.get("size"))
            except StopIteration as end:
                return Path(end.value)

    def _stopped(self) -> str:
        if not self._progress.done:
            return _("Stopped. Nothing came in.")
        return _("Stopped after %(done)s of %(total)s records, which are in. The same command brings the rest.") % {
            "done": f"{self._progress.done:,}",
            "total": f"{self._progress.total or 0:,}",
        }

    def _say_bad_lines(self, report: ImportReport) -> None:
        for line in report.bad_lines[:20]:
            self.stderr.write(str(line))
        if report.bad > 20:
            self.stderr.write(_("… and %(n)s more") % {"n": report.bad - 20})


def _show_look(bar: ProgressBar, told: Mapping[str, Any]) -> None:
    if "read" in told:
        bar.show(_("Looking through the file (kB):"), told["read"] // 1000, told["size"] // 1000)


def _choices(options: dict[str, Any]) -> import_job.ImportOptions:
    return import_job.ImportOptions(
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


def _user(name: str | None) -> User | None:
    if name is None:
        return None
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise CommandError(_("There is no user %(name)s.") % {"name": name})
    return user


def _checked(slug: str) -> str:
    """An address that pages can have."""
    try:
        Project._meta.get_field("slug").run_validators(slug)
    except ValidationError as error:
        raise CommandError(f"--project {slug}: {' '.join(error.messages)}") from error
    return slug
