"""Print one label per task from the ratings of a CSV file, with its probability."""

import csv
import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from labeling.management import csv_command
from stats import crowd_analysis, ratings_file
from stats.crowd_analysis import CrowdLabel


class Command(csv_command.CsvCommand):
    help = "Infer one label per task from a CSV file with the columns task, worker, label."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--method", choices=crowd_analysis.CONSENSUS_METHODS, required=True, help="how to infer labels"
        )
        parser.add_argument("--json", action="store_true", help="print a JSON list instead of CSV")

    def compute(self, options: dict[str, Any]) -> list[CrowdLabel]:
        return list(_infer_labels(options))

    def print_result(self, result: list[CrowdLabel], options: dict[str, Any]) -> None:
        if options["json"]:
            self.stdout.write(json.dumps([asdict(task) for task in result], ensure_ascii=False, indent=2))
            return
        writer = csv.writer(self.stdout, lineterminator="\n")
        writer.writerow(("task", "label", "probability", "votes"))
        writer.writerows((task.task, task.label, f"{task.probability:.6f}", task.votes) for task in result)


def _infer_labels(options: dict[str, Any]) -> Iterator[CrowdLabel]:
    is_first_error = options["method"] == "first_error"
    if is_first_error and options["values"] is not None:
        raise CommandError("--values cannot be used with first_error, whose labels are step numbers or -1")
    with csv_command.open_csv(options["csv"]) as file:
        ratings = ratings_file.read_ratings(
            file,
            optional=crowd_analysis.FIRST_ERROR_COLUMNS if is_first_error else (),
            may_be_blank=crowd_analysis.FIRST_ERROR_BLANK_COLUMNS if is_first_error else (),
        )
    ratings = csv_command.select_raters(ratings, options)
    if is_first_error:
        return crowd_analysis.infer_first_errors(ratings)
    scale, labels = csv_command.parse_scale(ratings, options["values"])
    return crowd_analysis.infer_labels(ratings, scale, labels, method=options["method"])
