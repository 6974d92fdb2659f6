"""Metadata of an import: stored, shown, and exported again as native records and in the long table."""

import csv
import io
import json

import pytest
from django.test import Client
from django.urls import reverse

from formats import catalog
from formats.records import TraceRecord
from labeling.models import Project, Source, Submission, Trace
from labeling.traces import load
from people import members
from people.models import Role
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file

pytestmark = pytest.mark.django_db

RECORDS = [
    {"problem": "One?", "steps": ["a", "b"], "labels": [1, -1], "labeler": "ann", "level": 5, "tags": {"a": [1]}},
    {"problem": "Two?", "text": "One. Two.", "labels": [1, 1], "labeler": "ann"},
]


def import_native(project: Project, content: bytes, table: str | None = None) -> None:
    source = Source.objects.create(project=project, name="x", format="native", added_at=factories.NOW)
    items = list(catalog.read_traces(io.BytesIO(content), format="native", table=table))
    records = [each for each in items if isinstance(each, TraceRecord)]
    assert records == items
    load.load_records(project=project, source=source, records=records, now=factories.NOW)


@pytest.mark.fault
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_native_files_are_imported_again_without_change(ending: str, client: Client) -> None:
    project = factories.make_project(reserve_problem_share=0.0)
    import_native(project, b"\n".join(json.dumps(record).encode() for record in RECORDS))
    written = read_file(build_snapshot(project, "native", "steps", ending=ending), f"data/native/train.{ending}")
    import_native(project, written, None if ending == "jsonl" else ending)
    metadata = {"level": 5, "tags": {"a": [1]}}
    assert sorted((each.metadata for each in Trace.objects.all()), key=len) == [{}, metadata]
    assert Submission.objects.count() == 4  # those of another file, with pseudonyms
    other = factories.make_project("other", reserve_problem_share=0.0)
    import_native(other, written, None if ending == "jsonl" else ending)
    assert Trace.objects.filter(project=other, metadata=metadata).count() == 1
    member = factories.make_user("lead")
    members.add_member(project=project, user=member, role=Role.LEAD, now=factories.NOW)
    client.force_login(member)
    shown = [
        "data-metadata" in client.get(reverse("dashboard:trace", args=[project.slug, each.pk])).content.decode()
        for each in Trace.objects.filter(project=project).order_by("problem__text")
    ]
    assert shown == [True, False]


def test_long_table_has_metadata() -> None:
    project = factories.make_project(reserve_problem_share=0.0)
    import_native(project, b"\n".join(json.dumps(record).encode() for record in RECORDS))
    table = read_file(build_snapshot(project, "steps", ending="csv"), "data/steps/train.csv").decode()
    cells = {row["problem"]: row["metadata"] for row in csv.DictReader(io.StringIO(table))}
    assert json.loads(cells["One?"]) == {"level": 5, "tags": {"a": [1]}}
    assert cells["Two?"] == ""
