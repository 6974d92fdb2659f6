"""A project with submitted and settled traces, for the tests of the figures."""

import csv
import io

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from labeling.models import ProjectStats
from people import members
from people.models import Role
from tests import factories
from tests.labeling.quality import submitted_work
from tests.people.personas import Personas


def label_traces(cast: Personas, n: int) -> None:
    """Let two new raters agree on every trace except the last one, on which one of them marks the first step."""
    raters = submitted_work.make_raters(cast.project, 2)
    for number in range(n):
        trace = factories.make_trace(cast.project, ["One.", "Two."])
        submitted_work.submit_trace(raters[0], trace, [1, -1])
        submitted_work.submit_trace(raters[1], trace, [1, -1] if number < n - 1 else [-1])
    submitted_work.refresh_quality(now=factories.NOW)


def read_csv(client: Client, address: str, key: str, **query: str) -> list[list[str]]:
    """Download the table `key` of a page, heading first."""
    return list(csv.reader(io.StringIO(client.get(address, {**query, "csv": key}).content.decode())))


def count_queries_as_it_grows(client: Client, cast: Personas, address: str) -> list[int]:
    """Return the queries of a page for few and for many traces and members."""
    counts = []
    for n in (3, 12):
        label_traces(cast, n)
        for _ in range(n):
            members.add_member(project=cast.project, user=factories.make_user(), role=Role.ANNOTATOR, now=factories.NOW)
        ProjectStats.objects.update(is_stale=False)  # as after a computation
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        counts.append(len(queries))
    return counts
