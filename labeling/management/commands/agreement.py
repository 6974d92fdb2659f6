"""How far the raters of a CSV file agree: every step statistic with its interval, as JSON."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.agreement import crowd_report, ratings_file
from labeling.agreement.ratings_file import BadFile
from labeling.management import csv_input, output

HIGHEST = 0.999999  # above it the quantiles run out of digits


class Command(BaseCommand):
    help = "Measure the agreement of ratings in a CSV file with the columns task, worker, label and perhaps cluster."

    requires_system_checks = ()  # reads a file and no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        csv_input.add_arguments(parser)
        parser.add_argument("--level", type=float, default=0.95, help="level of the intervals (default 0.95)")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 < options["level"] <= HIGHEST:
            raise CommandError(f"--level {options['level']}: a level lies between 0 and 1, {HIGHEST} at most")
        try:
            with csv_input.opened(options["csv"]) as file:
                ratings = ratings_file.read(file, optional=("cluster",))
            found, labels = csv_input.scale_of(ratings, options["values"])
            report = crowd_report.of_ratings(ratings, found, labels, level=options["level"])
        except BadFile as error:
            raise CommandError(str(error)) from None
        with output.printing(self.stdout):
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
