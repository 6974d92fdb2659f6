"""List, create and stop rules that put new traces first: `manage.py steering_rules --project SLUG --share 0.1`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling.models import Project, SteeringRule
from labeling.traces import steering_rules
from people import steering_orders
from people.steering_orders import InvalidSteering


class Command(BaseCommand):
    help = "List the rules that put a share of new traces first. With --share, create one; with --stop, stop one."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--project", required=True, metavar="SLUG", help="the slug of the project")
        add(
            "--share",
            type=float,
            metavar="SHARE",
            help="create a rule that puts this share of new traces first (above 0, up to 1)",
        )
        add("--domain", default="", help="only traces of this domain")
        add("--source", default="", metavar="TEXT", help="only traces of files whose name contains this text")
        add("--group", default="", metavar="NAME", help="put them first for this group; default: for everyone")
        add("--existing", action="store_true", help="also apply the rule to existing traces that are not labeled yet")
        add("--stop", type=int, metavar="ID", help="stop this rule")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(_("Project %(slug)s does not exist.") % {"slug": options["project"]})
        rules = SteeringRule.objects.filter(project=project, stopped_at=None).select_related("group").order_by("pk")
        if options["share"] is not None:
            self._make(project, options)
        if options["stop"] is not None:
            rule = rules.filter(pk=options["stop"]).first()
            if rule is None:
                raise CommandError(_("There is no rule %(id)s.") % {"id": options["stop"]})
            steering_rules.stop_rule(rule=rule, by=None, now=timezone.now())
        for rule in rules:
            of = rule.domain or "-", rule.source_name or "-", rule.group.name if rule.group else "-"
            self.stdout.write(f"{rule.pk:>6}  share {rule.share:g}  domain {of[0]}  source {of[1]}  group {of[2]}")

    def _make(self, project: Project, options: dict[str, Any]) -> None:
        if not 0 < options["share"] <= 1:
            raise CommandError(_("The share must be above 0 and at most 1."))
        try:
            group = steering_orders.find_group(project, options["group"]) if options["group"] else None
        except InvalidSteering as error:
            raise CommandError(str(error)) from error
        n = steering_rules.make_rule(
            project=project,
            domain=options["domain"][:100],
            source_name=options["source"][:100],
            share=options["share"],
            group=group,
            applies_to_existing=options["existing"],
            by=None,
            now=timezone.now(),
        )
        self.stdout.write(_("%(n)d existing traces were moved to the front of the queue.") % {"n": n})
