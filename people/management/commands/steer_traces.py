"""Tag traces, put them first, assign them: `manage.py steer_traces first --project SLUG --domain geometry`."""

import json
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from labeling.models import Project
from people import steering_orders
from people.steering_orders import InvalidSteering, SteeringOrder, SteeringVerb, TraceChoice


class Command(BaseCommand):
    help = (
        "Tag, order, assign or withdraw the traces that match the conditions. Exit codes: 0 done, 1 refused, 2"
        " wrong usage."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add(
            "action",
            choices=get_args(SteeringVerb),
            help="tag or untag; move to the front or back; request a label; requeue; assign a reviewer; withdraw",
        )
        add("--project", required=True, metavar="SLUG", help="the slug of the project")
        add("--by", metavar="USER", help="username to log as the author of the change")
        add("--tag", default="", help="the tag to add or to remove")
        add("--group", default="", metavar="NAME", help="first: only for this group")
        add("--rater", default="", metavar="USER", help="first: only for this annotator (username or pseudonym)")
        add("--reviewer", default="", metavar="USER", help="reviewer: who adjudicates; empty for no one")
        add("--reason", default="", help="withdraw: the reason")
        choice = parser.add_argument_group("which traces", "All conditions must hold; at least one is required.")
        add = choice.add_argument
        add("--trace", dest="traces", type=int, action="append", metavar="ID", help="this trace (repeatable)")
        add(
            "--ref",
            dest="refs",
            action="append",
            metavar="REF",
            help="the trace with this name in its file (repeatable)",
        )
        add("--domain", default="", help="of this domain")
        add("--tagged", default="", metavar="TAG", help="with this tag")
        add("--source", default="", metavar="TEXT", help="of files whose name contains this text")
        add("--metadata", type=_parse_field, action="append", default=[], metavar="NAME=VALUE", help="with this field")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(_("Project %(slug)s does not exist.") % {"slug": options["project"]})
        by = User.objects.filter(username=options["by"], is_active=True).first() if options["by"] else None
        if options["by"] and by is None:
            raise CommandError(_("There is no active user %(name)s.") % {"name": options["by"]})
        names = ("traces", "refs", "domain", "source")
        metadata = dict(options["metadata"]) or None
        choice = TraceChoice(**{name: options[name] for name in names}, tag=options["tagged"], metadata=metadata)
        order = SteeringOrder(**{name: options[name] for name in SteeringOrder.__struct_fields__})
        try:
            outcome = steering_orders.steer_traces(
                project=project, choice=choice, order=order, by=by, now=timezone.now()
            )
        except InvalidSteering as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_("%(n)d traces changed.") % {"n": outcome.n_done})
        for reason, n in outcome.refused.most_common():
            self.stderr.write(_("%(n)d skipped: %(why)s") % {"n": n, "why": reason})


def _parse_field(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE. A value that is JSON is taken as JSON, any other as text."""
    name, _equals, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
