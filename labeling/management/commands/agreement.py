"""How far the raters of a CSV file agree: every step statistic with its interval, as JSON."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.management import csv_input, output
from stats import crowd_analysis, ratings_file
from stats.ratings_file import InvalidRatingsFile

MAX_LEVEL = 0.999999  # above it the quantiles run out of digits


class Command(BaseCommand):
    help = "Measure the agreement of ratings in a CSV file with the columns task, worker, label and perhaps cluster."

    requires_system_checks = ()  # reads a file and no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        csv_input.add_csv_arguments(parser)
        parser.add_argument("--level", type=float, default=0.95, help="level of the intervals (default 0.95)")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 < options["level"] <= MAX_LEVEL:
            raise CommandError(f"--level {options['level']}: a level lies between 0 and 1, {MAX_LEVEL} at most")
        try:
            with csv_input.open_csv(options["csv"]) as file:
                ratings = ratings_file.read_ratings(file, optional=("cluster",))
            found, labels = csv_input.parse_scale(ratings, options["values"])
            report = crowd_analysis.report_agreement(ratings, found, labels, level=options["level"])
        except InvalidRatingsFile as error:
            raise CommandError(str(error)) from None
        with output.print_safely(self.stdout):
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
