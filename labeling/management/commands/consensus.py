"""One label per task from the ratings of a CSV file, with its probability."""

import csv
import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.agreement import crowd_consensus, crowd_reports, ratings_file
from labeling.agreement.crowd_consensus import Settled
from labeling.agreement.ratings_file import BadFile
from labeling.management import csv_input, output


class Command(BaseCommand):
    help = "Settle one label per task from ratings in a CSV file with the columns task, worker, label."

    requires_system_checks = ()  # reads a file and no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        csv_input.add_arguments(parser)
        parser.add_argument("--method", choices=crowd_consensus.METHODS, required=True, help="how to settle")
        parser.add_argument("--json", action="store_true", help="print a JSON list in place of CSV")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            settled = list(_settled(options))
        except BadFile as error:
            raise CommandError(str(error)) from None
        with output.printing(self.stdout):
            self._print(settled, as_json=options["json"])

    def _print(self, settled: list[Settled], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps([asdict(task) for task in settled], ensure_ascii=False, indent=2))
            return
        writer = csv.writer(self.stdout, lineterminator="\n")
        writer.writerow(("task", "label", "probability", "votes"))
        writer.writerows((task.task, task.label, f"{task.probability:.6f}", task.votes) for task in settled)


def _settled(options: dict[str, Any]) -> Iterator[Settled]:
    is_first_error = options["method"] == "first_error"
    if is_first_error and options["values"] is not None:
        raise CommandError("--values is not for first_error: its labels are places of a first error, or -1 for none")
    with csv_input.opened(options["csv"]) as file:
        ratings = ratings_file.read(
            file,
            optional=crowd_reports.COLUMNS if is_first_error else (),
            may_be_blank=crowd_reports.MAY_BE_BLANK if is_first_error else (),
        )
    if is_first_error:
        return crowd_consensus.of_first_errors(ratings)
    found, labels = csv_input.scale_of(ratings, options["values"])
    return crowd_consensus.of_labels(ratings, found, labels, method=options["method"])
