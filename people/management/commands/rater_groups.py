"""List, save and delete groups of annotators: `manage.py rater_groups --project SLUG --save geometry --rater ada`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling import queue
from labeling.models import Project, RaterGroup
from labeling.traces import steering_rules
from people import steering_orders
from people.steering_orders import InvalidSteering


class Command(BaseCommand):
    help = "List the groups of annotators of a project, or save or delete one."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--project", required=True, metavar="SLUG", help="the slug of the project")
        add("--save", metavar="NAME", help="create this group, or replace its annotators with those given by --rater")
        add("--rater", dest="raters", action="append", default=[], metavar="USER", help="an annotator (repeatable)")
        add("--delete", metavar="NAME", help="delete this group; its traces return to their usual places in the queue")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(_("Project %(slug)s does not exist.") % {"slug": options["project"]})
        try:
            self._change(project, options)
        except InvalidSteering as error:
            raise CommandError(str(error)) from error
        for group in (
            RaterGroup.objects.named().filter(project=project).prefetch_related("raters__user").order_by("name")
        ):
            names = sorted(rater.user.username if rater.user else rater.labeler or "" for rater in group.raters.all())
            self.stdout.write(f"{group.name}: {', '.join(names) or '-'}")

    def _change(self, project: Project, options: dict[str, Any]) -> None:
        now = timezone.now()
        if options["save"]:
            raters = steering_orders.find_raters(project, options["raters"])
            queue.save_group(project=project, name=options["save"][:80], raters=raters, by=None, now=now)
        if options["delete"]:
            group = steering_orders.find_group(project, options["delete"])
            steering_rules.delete_group(group=group, by=None, now=now)
