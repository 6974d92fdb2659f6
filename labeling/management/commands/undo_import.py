"""Undo an import: `manage.py undo_import --project SLUG [ID]`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from jobs import runner
from jobs.failures import JobFailed
from jobs.runner import JobProgress
from labeling.models import Source
from labeling.traces import undo


class Command(BaseCommand):
    requires_system_checks = ()  # they load all pages; the servers run them when they start
    help = "Undo an import. Without an ID, list the imports of the project."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", type=int, nargs="?", metavar="ID", help="the number of the import")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the slug of the project")

    def handle(self, *args: Any, **options: Any) -> None:
        sources = Source.objects.filter(project__slug=options["project"]).select_related("project").order_by("pk")
        if options["source"] is None:
            self._list(list(sources))
            return
        source = sources.filter(pk=options["source"]).first()
        if source is None:
            raise CommandError(
                _("The project has no import with this ID. To list the imports, run the command without an ID.")
            )
        try:
            counts = self._undo(source)
        except JobFailed as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            _("Import undone: %(removed)d traces removed, %(withdrawn)d withdrawn. All labels are kept.")
            % {"removed": counts["removed"], "withdrawn": counts["withdrawn"]}
        )

    def _list(self, sources: list[Source]) -> None:
        for source in sources:
            state = _("undone") if source.undone_at else f"{source.traces.count():,}"
            self.stdout.write(f"{source.pk:>8}  {source.added_at:%Y-%m-%d}  {state:>10}  {source.name}")

    def _undo(self, source: Source) -> dict[str, Any]:
        progress = JobProgress(0)
        for each in runner.run_here(undo.run_undo(source, by=None, checkpoint={})):
            progress = each
        return dict((progress.result or {})["undone"])
