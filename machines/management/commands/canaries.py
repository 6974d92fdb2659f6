"""Freeze gaming canaries, let PRMs score them, and see how every version fares."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from jobs import runner
from labeling.models import Project
from machines import canary_reports
from prm import canaries
from prm.canaries import CanariesRefused
from prm.models import PRM


class Command(BaseCommand):
    help = (
        "Freeze gaming canaries, let PRMs score them, and show how PRMs and judges fare. See also: judge run --scope."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        freeze = actions.add_parser("freeze", help="freeze a new set, which replaces the current one")
        freeze.add_argument("--edits", type=int, default=canaries.DEFAULT_SIZE)
        score = actions.add_parser("score", help="let a PRM score the canaries, and print its figures as JSON")
        score.add_argument("--prm", type=int, required=True, help="version of the PRM")
        actions.add_parser("show", help="print the set and the figures of every version as JSON")
        for action in actions.choices.values():
            action.add_argument("--project", required=True, help="the project's slug, as in its links")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            getattr(self, f"_{action}")(project, options)
        except CanariesRefused as error:
            raise CommandError(str(error)) from error

    def _freeze(self, project: Project, options: dict[str, Any]) -> None:
        row = canaries.freeze_canaries(project=project, by=None, now=timezone.now(), n=options["edits"])
        self.stdout.write(json.dumps(canary_reports.describe_set(row), indent=1))

    def _score(self, project: Project, options: dict[str, Any]) -> None:
        prm = PRM.objects.filter(project=project, version=options["prm"]).select_related("project").first()
        if prm is None:
            raise CommandError(f"The project {project.slug} has no PRM with version {options['prm']}.")
        canaries.refuse_untestable(prm)
        for _progress in runner.run_here(canaries.test_prm(prm)):
            pass
        report = canaries.build_prm_report(prm, canaries.find_version_before(prm))
        self.stdout.write(json.dumps(report, indent=1))

    def _show(self, project: Project, options: dict[str, Any]) -> None:
        row = canaries.find_set(project.pk)
        if row is None:
            raise CommandError("This project has no canaries. Freeze them with: canaries freeze")
        content = canary_reports.describe_set(row) | {"results": canary_reports.describe_results(project)}
        self.stdout.write(json.dumps(content, indent=1))
