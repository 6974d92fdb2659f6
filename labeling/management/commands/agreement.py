"""Print the agreement between the raters of a CSV file: every step statistic with its interval, as JSON."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from labeling.management import csv_command
from stats import crowd_analysis, ratings_file

MAX_LEVEL = 0.999999  # above it, quantiles exceed floating-point precision


class Command(csv_command.CsvCommand):
    help = "Measure agreement in a CSV file with the columns task, worker, label and optionally cluster."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--level", type=float, default=0.95, help="confidence level of the intervals (default 0.95)"
        )

    def compute(self, options: dict[str, Any]) -> dict[str, Any]:
        if not 0 < options["level"] <= MAX_LEVEL:
            raise CommandError(f"--level {options['level']}: enter a number between 0 and {MAX_LEVEL}")
        with csv_command.open_csv(options["csv"]) as file:
            ratings = csv_command.select_raters(ratings_file.read_ratings(file, optional=("cluster",)), options)
        scale, labels = csv_command.parse_scale(ratings, options["values"])
        return crowd_analysis.report_agreement(ratings, scale, labels, level=options["level"])

    def print_result(self, result: dict[str, Any], options: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False))
