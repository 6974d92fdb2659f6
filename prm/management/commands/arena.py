"""Open and close the arena, count its edits, and write the hard negatives."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from labeling.models import Project
from prm import arena
from prm.arena import ArenaRefused


class Command(BaseCommand):
    help = "Open and close the arena, count its edits, and write hard negatives as JSON lines in ProcessBench's format."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("open", help="open the arena; needs a current PRM that can score new steps")
        actions.add_parser("close", help="close the arena; attempts and checks are kept")
        actions.add_parser("show", help="print the numbers of edits by state as JSON")
        actions.add_parser("export", help="write the confirmed edits").add_argument("--out", type=Path)
        for action in actions.choices.values():
            action.add_argument("--project", required=True, help="the project's slug, as in its links")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            getattr(self, f"_{action}")(project, options)
        except ArenaRefused as error:
            raise CommandError(str(error)) from error

    def _open(self, project: Project, options: dict[str, Any]) -> None:
        arena.open_arena(project=project, by=None, now=timezone.now())

    def _close(self, project: Project, options: dict[str, Any]) -> None:
        arena.close_arena(project=project, by=None, now=timezone.now())

    def _show(self, project: Project, options: dict[str, Any]) -> None:
        content = {"is_open": arena.is_open(project.pk), "edits": arena.count_edits(project.pk)}
        self.stdout.write(json.dumps(content, indent=1))

    def _export(self, project: Project, options: dict[str, Any]) -> None:
        lines = (json.dumps(row, ensure_ascii=False) for row in arena.export_hard_negatives(project.pk))
        if options["out"] is None:
            sys.stdout.writelines(f"{line}\n" for line in lines)
            return
        with options["out"].open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
