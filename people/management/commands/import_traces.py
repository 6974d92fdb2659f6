"""Import a file of traces into a project: `manage.py import_traces FILE --project SLUG`.

The command creates projects and memberships, which is why it belongs to `people` and not to `labeling`.
"""

import datetime as dt
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from formats import catalog, input_files, segmenters, zip_archives
from formats.privacy import PRIVACY_MODES
from jobs import runner
from jobs.failures import JobFailed
from jobs.runner import JobProgress
from jobs.terminal import ProgressBar
from labeling.models import Project
from labeling.models.gold import GoldUse
from labeling.models.trace import ImportedLabelKind, SourcePurpose
from labeling.projects import lifecycle
from labeling.traces import import_job, locations, scan
from labeling.traces.scan import ImportOptions, ImportReport
from people import members
from people.models import Membership, Role

MAX_PRINTED = 20
STOPPED = 130  # the exit code of an interrupted program
SCAN_LABEL = gettext_lazy("Scanning the file (kB):")
IMPORT_LABEL = gettext_lazy("Importing records:")


class Command(BaseCommand):
    requires_system_checks = ()  # they load all pages; the servers run them when they start
    help = (
        "Import a file of traces into a project. The project is created if it does not exist. Importing a file again "
        "adds nothing. Exit codes: 0 imported, 1 refused, 2 wrong usage, 130 stopped by Ctrl-C."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("file", help="a path (.gz, .zst and .zip are unpacked) or the address of an object: s3://bucket/name")
        add("--project", required=True, metavar="SLUG", help="the slug of the project")
        add(
            "--by",
            metavar="USER",
            help="username of the person importing the file; this person owns the project if it is new",
        )
        add("--format", default="auto", choices=["auto", *catalog.INPUT_FORMATS], help="auto: detect the format")
        names = ["", segmenters.BEST_FIT, *segmenters.SEGMENTER_NAMES]
        add("--segmenter", default="", choices=names, help="how to split texts into steps")
        add(
            "--separator",
            dest="segmenter",
            type=lambda text: segmenters.SEPARATOR_PREFIX + text,
            metavar="TEXT",
            help=r"split texts into steps at this separator; \n is a line break",
        )
        add(
            "--map",
            dest="columns",
            action="append",
            default=[],
            metavar="NAME=FIELD",
            help="rename a column or JSON key to a field of the format, or leave it out (NAME=); repeatable",
        )
        add("--labels", default="judgments", choices=ImportedLabelKind.values, help="what the ratings in the file are")
        add(
            "--labels-by",
            default="",
            metavar="NAME",
            help="name of the person or model behind human, monte_carlo or judge labels",
        )
        add("--gold-use", default=GoldUse.HIDDEN.value, choices=GoldUse.values, help="how to use gold in the file")
        add(
            "--purpose",
            default=SourcePurpose.RATE.value,
            choices=SourcePurpose.values,
            help="benchmark: keep the problems out of training",
        )
        add(
            "--private",
            default="count",
            choices=PRIVACY_MODES,
            help="what to do with email addresses, phone numbers and secret keys",
        )
        add(
            "--images",
            type=Path,
            metavar="PLACE",
            help="folder or ZIP archive of the images; default: the folder of the file",
        )
        add("--licence", default="", help="license of the data")
        add("--source", dest="statement", default="", metavar="TEXT", help="origin of the data")
        add("--lenient", dest="is_lenient", action="store_true", help="skip bad lines instead of rejecting the file")
        add("--bad-lines", type=Path, metavar="FILE", help="write all bad lines to a CSV file")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        self._progress = JobProgress(0)
        try:
            report = self._import(options, bar)
        except KeyboardInterrupt:
            bar.clear()
            raise CommandError(self._describe_stop(), returncode=STOPPED) from None
        except import_job.FileHasBadLines as error:
            bar.clear()
            self._print_bad_lines(error.report)
            self.stderr.write(
                _("Use --lenient to skip bad lines, --format NAME to choose another format, or --map to rename fields.")
            )
            raise CommandError(str(error).partition(": ")[0]) from error
        except (JobFailed, input_files.UnreadableFile, catalog.UnknownFormat) as error:
            bar.clear()
            raise CommandError(str(error)) from error
        bar.clear()
        self._print_bad_lines(report)
        for table in scan.make_report_tables(report):
            self.stdout.write(self.style.MIGRATE_HEADING(table.name))
            for figure in table.figures:
                self.stdout.write(f"{figure.value:>16}  {figure.name}")

    def _import(self, options: dict[str, Any], bar: ProgressBar) -> ImportReport:
        now = timezone.now()
        options = {**options, "columns": "\n".join(options["columns"])}
        choices = ImportOptions(**{name: options[name] for name in ImportOptions.__struct_fields__ if name in options})
        choices.check()
        path = self._locate_file(options["file"], bar)
        images = options["images"]
        if images is None and path.suffix.lower() != zip_archives.SUFFIX:
            images = path.parent
        with input_files.open_file(path):
            scan.resolve_format(path, choices)  # before a project is created for an unreadable file
        by = _find_user(options["by"])
        project = self._ensure_project(options["project"], by, now)
        request = import_job.prepare_import(project=project, path=path, choices=choices, now=now)
        chunks = import_job.run_import(
            request, checkpoint={}, by=by, bad_lines_path=options["bad_lines"], images=images
        )
        for progress in runner.run_here(chunks):
            if "read" in (scanned := progress.result or {}):
                bar.show(str(SCAN_LABEL), scanned["read"] // 1000, scanned["size"] // 1000)
            elif progress.total is not None:
                self._progress = progress
                bar.show(str(IMPORT_LABEL), progress.done, progress.total)
        return import_job.report_from_progress(self._progress)

    def _ensure_project(self, slug: str, by: User | None, now: dt.datetime) -> Project:
        """Find or create the project, and make the user its owner if it has no members."""
        project = Project.objects.filter(slug=slug).first()
        if project is None:
            project = lifecycle.create_project(name=slug, slug=_check_slug(slug), by=by, now=now)
        if not Membership.objects.active().filter(project=project).exists():
            if by is None:
                self.stderr.write(
                    _("The project %(slug)s has no members, so no one can see it. Use --by USER to set its owner.")
                    % {"slug": slug}
                )
            else:
                members.add_member(project=project, user=by, role=Role.OWNER, now=now)
        return project

    def _locate_file(self, address: str, bar: ProgressBar) -> Path:
        """Return the local path, after a download if necessary. The command may read any file and any store."""
        if not address.startswith(locations.STORE_SCHEMES):
            return Path(address).absolute()
        download = locations.fetch_object(address)
        while True:
            try:
                progress = next(download).result or {}
                bar.show(_("Downloading:"), progress.get("fetched", 0), progress.get("size"))
            except StopIteration as end:
                return Path(end.value)

    def _describe_stop(self) -> str:
        if not self._progress.done:
            return _("Stopped. Nothing was imported.")
        return _("Stopped after %(done)s of %(total)s records. Run the same command again to import the rest.") % {
            "done": f"{self._progress.done:,}",
            "total": f"{self._progress.total or 0:,}",
        }

    def _print_bad_lines(self, report: ImportReport) -> None:
        groups = scan.group_bad_lines(report.bad_lines)
        for group in groups[:MAX_PRINTED]:
            more = _(" (%(n)s lines with this reason)") % {"n": group.n} if group.n > 1 else ""
            self.stderr.write(f"{group.first}{more}")
        if rest := report.bad - sum(group.n for group in groups[:MAX_PRINTED]):
            self.stderr.write(_("… and %(n)s more") % {"n": rest})


def _find_user(name: str | None) -> User | None:
    if name is None:
        return None
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise CommandError(_("There is no active user %(name)s.") % {"name": name})
    return user


def _check_slug(slug: str) -> str:
    try:
        Project._meta.get_field("slug").run_validators(slug)
    except ValidationError as error:
        raise CommandError(f"--project {slug}: {' '.join(error.messages)}") from error
    return slug
