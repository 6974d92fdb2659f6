"""Measure monitors, and set visibility conditions: `manage.py monitors --project SLUG`."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from labeling.models import Project
from labeling.projects import visibility
from labeling.projects.visibility import VisibilityRefused
from labeling.quality import monitors
from labeling.quality.monitors import InvalidMonitorQuery, TruthSource


class Command(BaseCommand):
    requires_system_checks = ()  # they load all pages; the servers run them when they start
    help = "Print TPR, TNR and g-mean² of people and machines as JSON, or set the visibility conditions."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the slug of the project")
        parser.add_argument("--question", default="", metavar="CODE", help="the question (default: the first one)")
        parser.add_argument("--yes", default="", metavar="CODE", help="the answer that means yes (default: the first)")
        parser.add_argument("--truth", default="", choices=["", *TruthSource.values], help="where the truth is")
        parser.add_argument("--key", default="", metavar="NAME", help="the field of the metadata with the truth")
        parser.add_argument("--reasoning-share", type=float, help="show the reasoning only to this share of the work")
        parser.add_argument("--actions-share", type=float, help="show the actions only to this share of the work")
        parser.add_argument("--off", action="store_true", help="show everything from now on")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"Project {options['project']} does not exist. Check the slug.")
        shares = options["reasoning_share"], options["actions_share"]
        if options["off"]:
            plan = visibility.find_plan(project.pk)
            if plan is not None:
                visibility.stop_visibility(plan=plan, by=None, now=timezone.now())
        elif shares != (None, None):
            try:
                reasoning, actions = (share or 0.0 for share in shares)
                visibility.start_visibility(
                    project=project, reasoning_share=reasoning, actions_share=actions, by=None, now=timezone.now()
                )
            except VisibilityRefused as error:
                raise CommandError(str(error)) from error
        else:
            self._print_figures(project, options)

    def _print_figures(self, project: Project, options: dict[str, Any]) -> None:
        try:
            query = monitors.make_query(project, **{name: options[name] for name in monitors.MonitorQuery._fields})
        except InvalidMonitorQuery as error:
            raise CommandError(str(error)) from error
        if query is None:
            raise CommandError("The project asks no question with choices. Add one in Settings → Questions.")
        found = monitors.describe_monitors(project, query)
        self.stdout.write(json.dumps(found, indent=2, ensure_ascii=False, cls=DjangoJSONEncoder))
