"""Imported labels of several people are settled like labels made here, and create no work."""

import io
import json
from typing import Any

import pytest
from django.db import connection

from events.models import Event
from formats import prm800k
from formats.records import TraceRecord
from jobs import runner
from labeling import overlap_change, queue
from labeling.datasets.selection import ManifestFilters
from labeling.models import AddedSlot, Consensus, Project, QueueEntry, Settlement, Trace
from labeling.models.trace import ImportedLabelKind
from labeling.quality import resolve
from labeling.traces import scan
from labeling.traces.load import load_records
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.formats import prm800k_lines as prm
from tests.labeling.quality import submitted_work
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db
NOW = factories.NOW
STEPS = ["2 + 2 = 4", "4 + 2 = 7", "So 7."]
NO_ERROR = {"steps": [prm.make_step(text) for text in STEPS], "finish_reason": "solution"}
AGREED, DIFFERING, SINGLE = "Two agree?", "Two differ?", "One alone?"
LINES = (
    prm.make_line(problem=AGREED, labeler="ann"),
    prm.make_line(problem=DIFFERING, labeler="ann"),
    prm.make_line(problem=SINGLE, labeler="ann"),
    prm.make_line(problem=AGREED, labeler="ben"),
    prm.make_line(problem=DIFFERING, labeler="ben", **NO_ERROR),
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Any, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


def project(**fields: Any) -> Project:
    return factories.make_project(reserve_problem_share=0.0, **fields)


def settle(of: Project) -> dict[str, tuple[str, str, int]]:
    """Return state, reason and votes of each problem after a refresh."""
    resolve.resolve_due_traces(now=NOW)
    rows = Settlement.objects.filter(project=of, is_due=False)
    return {row.trace.problem.text: (row.state, row.reason, row.n_votes) for row in rows}


def test_imported_labels_make_a_consensus_and_no_work() -> None:
    """The submissions of a trace are in different chunks and files."""
    one = project()
    load_lines(one, *LINES[:4], chunk=2)
    load_lines(one, *LINES[4:])
    assert settle(one) == {
        AGREED: ("settled", "all_agree", 2),
        DIFFERING: ("contested", "differ_at_limit", 2),
    }
    assert not QueueEntry.objects.exists()
    assert not AddedSlot.objects.exists()
    made = build_snapshot(one, "trl", purpose="training", filters=ManifestFilters(is_consensus=True))
    (row,) = map(json.loads, read_file(made, "data/trl/train.jsonl").splitlines())
    assert row["rater_kind"] == "consensus"
    assert (row["prompt"], row["completions"], row["labels"]) == (AGREED, STEPS[:2], [True, False])
    assert Event.objects.filter(what="trace.contested").count() == 1


def test_single_labels_count_once_the_overlap_is_one() -> None:
    one = project(overlap=2)
    load_lines(one, *LINES)
    assert SINGLE not in settle(one)
    job = overlap_change.change_overlap(project=one, overlap=1, overlap_limit=3, lease_seconds=1800, by=None, now=NOW)
    assert job is not None
    runner.run_job(job.pk, overlap_change.chunks)
    assert settle(one)[SINGLE] == ("settled", "all_agree", 1)


def test_repeated_import_marks_nothing() -> None:
    one = project()
    load_lines(one, *LINES)
    before = settle(one)
    load_lines(one, *LINES)
    assert not Settlement.objects.filter(is_due=True).exists()
    assert settle(one) == before


def test_imported_labels_count_with_labels_made_here() -> None:
    """A queued trace gets an additional label if its label made here and the imported one differ."""
    one = project()
    load_lines(one, prm.make_line(problem=DIFFERING), labels="none")
    trace = Trace.objects.get()
    assert QueueEntry.objects.get().slots == 2
    submitted_work.submit_trace(factories.make_rater(one), trace, [1, 1, 1])
    assert settle(one)[DIFFERING][:2] == ("reading", "first_readings")
    load_lines(one, prm.make_line(problem=DIFFERING, labeler="ann"))
    assert settle(one)[DIFFERING] == ("asked", "differ", 2)
    assert queue.is_labeled_here(trace_id=trace.pk)
    assert QueueEntry.objects.get(lane__arm="opinion").slots == 1


def test_machine_screening_and_live_submissions_are_not_settled() -> None:
    one = project(overlap=1)
    live = json.loads(prm.make_line(problem="Live?"))
    for key in [key for key in live["question"] if key.startswith("pre_generated")]:
        del live["question"][key]
    screening = prm.make_line(problem="Screened?", is_initial_screening_question=True)
    checked = prm.make_line(problem="Checked?", is_quality_control_question=True)
    load_lines(one, json.dumps(live).encode(), screening, checked, prm.make_line(problem=SINGLE))
    assert settle(one) == {SINGLE: ("settled", "all_agree", 1)}


def test_marking_takes_one_statement_per_chunk() -> None:
    lines = [prm.make_line(problem=f"What is {n}?", labeler=who) for n in range(30) for who in ("ann", "ben")]
    assert count_settlement_statements(project(), *lines) == 3
    assert Settlement.objects.filter(is_due=True).count() == 30
    assert count_settlement_statements(project(), *lines, labels="none") == 0


def count_settlement_statements(of: Project, *lines: bytes, labels: str = ImportedLabelKind.JUDGMENTS) -> int:
    """Count the statements on settlements during an import with twenty records per chunk."""
    statements: list[str] = []

    def record_statement(execute: Any, sql: str, *others: Any) -> Any:
        statements.append(sql)
        return execute(sql, *others)

    with connection.execute_wrapper(record_statement):
        load_lines(of, *lines, labels=labels, chunk=20)
    return sum("labeling_settlement" in sql for sql in statements)


def test_machine_ratings_are_kept_beside_the_consensus_of_people() -> None:
    """Two people agreed before the import: their consensus does not change."""
    one = project()
    load_lines(one, prm.make_line(problem=SINGLE, labeler="ann"), prm.make_line(problem=SINGLE, labeler="ben"))
    resolve.resolve_due_traces(now=NOW)
    before = Consensus.objects.get()
    records = prm800k.read(io.BytesIO(prm.make_line(problem=SINGLE, labeler="x")))
    attributed = [
        scan.attribute_labels(each, labels=ImportedLabelKind.JUDGE, labels_by="x")
        for each in records
        if isinstance(each, TraceRecord)
    ]
    load_records(project=one, source=factories.make_source(one), records=attributed, now=NOW)
    resolve.resolve_due_traces(now=NOW)
    after = Consensus.objects.get(revision=2)
    assert (after.first_error, after.n_votes, after.labels) == (before.first_error, 2, before.labels)
    assert (len(before.assisted_votes), len(after.assisted_votes)) == (0, 3)
    assert Settlement.objects.get().n_readings == 2
