"""Print one label per task from the ratings of a CSV file, with its probability."""

import csv
import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.management import csv_input, output
from stats import crowd_analysis, ratings_file
from stats.crowd_analysis import CrowdLabel
from stats.ratings_file import InvalidRatingsFile


class Command(BaseCommand):
    help = "Infer one label per task from a CSV file with the columns task, worker, label."

    requires_system_checks = ()  # uses no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        csv_input.add_csv_arguments(parser)
        parser.add_argument(
            "--method", choices=crowd_analysis.CONSENSUS_METHODS, required=True, help="how to infer labels"
        )
        parser.add_argument("--json", action="store_true", help="print a JSON list instead of CSV")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            labels = list(_infer_labels(options))
        except InvalidRatingsFile as error:
            raise CommandError(str(error)) from error
        with output.print_safely(self.stdout):
            self._print(labels, as_json=options["json"])

    def _print(self, labels: list[CrowdLabel], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps([asdict(task) for task in labels], ensure_ascii=False, indent=2))
            return
        writer = csv.writer(self.stdout, lineterminator="\n")
        writer.writerow(("task", "label", "probability", "votes"))
        writer.writerows((task.task, task.label, f"{task.probability:.6f}", task.votes) for task in labels)


def _infer_labels(options: dict[str, Any]) -> Iterator[CrowdLabel]:
    is_first_error = options["method"] == "first_error"
    if is_first_error and options["values"] is not None:
        raise CommandError("--values cannot be used with first_error, whose labels are step numbers or -1")
    with csv_input.open_csv(options["csv"]) as file:
        ratings = ratings_file.read_ratings(
            file,
            optional=crowd_analysis.FIRST_ERROR_COLUMNS if is_first_error else (),
            may_be_blank=crowd_analysis.FIRST_ERROR_BLANK_COLUMNS if is_first_error else (),
        )
    if is_first_error:
        return crowd_analysis.infer_first_errors(ratings)
    scale, labels = csv_input.parse_scale(ratings, options["values"])
    return crowd_analysis.infer_labels(ratings, scale, labels, method=options["method"])
