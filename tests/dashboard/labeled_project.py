"""A project with submitted and settled traces, for the tests of the figures."""

import csv
import io

from django.test import Client

from tests import factories
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas


def label_traces(cast: Personas, n: int) -> None:
    """Two new raters agree on every trace but the last, on which one of them marks the first step."""
    raters = submitted_work.make_raters(cast.project, 2)
    for number in range(n):
        trace = factories.make_trace(cast.project, ["One.", "Two."])
        submitted_work.submit_trace(raters[0], trace, [1, -1])
        submitted_work.submit_trace(raters[1], trace, [1, -1] if number < n - 1 else [-1])
    submitted_work.refresh_quality(now=factories.NOW)


def read_csv(client: Client, address: str, key: str, **query: str) -> list[list[str]]:
    """Download the table `key` of a page, heading first."""
    return list(csv.reader(io.StringIO(client.get(address, {**query, "csv": key}).content.decode())))
