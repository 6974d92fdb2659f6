"""Print the agreement between the raters of a CSV file: every step statistic with its interval, as JSON."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.management import csv_input, output
from stats import crowd_analysis, ratings_file
from stats.ratings_file import InvalidRatingsFile

MAX_LEVEL = 0.999999  # above it, quantiles exceed floating-point precision


class Command(BaseCommand):
    help = "Measure agreement in a CSV file with the columns task, worker, label and optionally cluster."

    requires_system_checks = ()  # uses no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        csv_input.add_csv_arguments(parser)
        parser.add_argument("--level", type=float, default=0.95, help="level of the intervals (default 0.95)")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 0 < options["level"] <= MAX_LEVEL:
            raise CommandError(f"--level {options['level']}: enter a number between 0 and {MAX_LEVEL}")
        try:
            with csv_input.open_csv(options["csv"]) as file:
                ratings = ratings_file.read_ratings(file, optional=("cluster",))
            scale, labels = csv_input.parse_scale(ratings, options["values"])
            report = crowd_analysis.report_agreement(ratings, scale, labels, level=options["level"])
        except InvalidRatingsFile as error:
            raise CommandError(str(error)) from error
        with output.print_safely(self.stdout):
            self.stdout.write(json.dumps(report, indent=2, ensure_ascii=False))
