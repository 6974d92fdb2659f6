"""Print pay by person and period as CSV: `manage.py list_pay --project SLUG --since 2026-01-01 --period month`."""

import csv
import datetime as dt
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from labeling.models import Project
from people import payroll


class Command(BaseCommand):
    help = "Print what each person has earned, as CSV. Dates are UTC days; the first and the last day are included."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--project", required=True, metavar="SLUG", help="the slug of the project")
        add(
            "--since",
            type=dt.date.fromisoformat,
            metavar="DATE",
            help="the first day (default: the start of the project)",
        )
        add("--until", type=dt.date.fromisoformat, metavar="DATE", help="the last day (default: today)")
        add("--period", default="", choices=["", "day", "week", "month"], help="one row per period")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(_("Project %(slug)s does not exist.") % {"slug": options["project"]})
        period = {name: options[name] for name in ("since", "until", "period")}
        table = csv.DictWriter(self.stdout, payroll.PaidWork.__struct_fields__)
        table.writeheader()
        for row in payroll.list_paid_work(project=project, **period):
            table.writerow({name: getattr(row, name) for name in row.__struct_fields__})
