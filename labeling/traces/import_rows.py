"""The rows of one chunk of an import, by table, until they are written together."""

from typing import NamedTuple

from formats.records import TraceRecord
from labeling.models import Assignment, Judgment, Option, OptionPart, Problem, Step, StepReview, Submission, Trace
from labeling.traces import bulk_insert

PROBLEM = bulk_insert.BulkTable(
    Problem,
    *("id", "project_id", "digest", "normal_digest", "ref", "domain", "text", "reference_answer"),
    *("reference_solution", "has_reference_answer", "has_reference_solution", "is_reserve", "source_id"),
)
TRACE = bulk_insert.BulkTable(
    Trace,
    *("id", "project_id", "problem_id", "digest", "kind", "n_steps", "ref", "answer", "verifier_score"),
    *("is_right", "outcome_by", "outcome_grader", "provenance_id", "source_id", "source_line", "added_at"),
)
STEP = bulk_insert.BulkTable(Step, "id", "trace_id", "position", "kind", "is_rateable", "separator", "source_position")
OPTION = bulk_insert.BulkTable(Option, "id", "step_id", "position", "origin", "text")
PART = bulk_insert.BulkTable(
    OptionPart, "id", "option_id", "position", "kind", "text", "name", "call_ref", "media_type", "data"
)
ASSIGNMENT = bulk_insert.BulkTable(
    Assignment,
    *("id", "project_id", "rater_id", "trace_id", "purpose", "attempt", "origin", "state", "submitted_at"),
    *("finish_reason", "submitted_revision"),
)
SUBMISSION = bulk_insert.BulkTable(
    Submission,
    *("id", "project_id", "assignment_id", "revision", "submitted_at", "finish_reason", "finish_note", "total_ms"),
    *("generation", "is_quality_control", "is_screening", "record_digest", "record_occurrence", "residue"),
)
TURN = bulk_insert.BulkTable(
    StepReview,
    *("id", "assignment_id", "revision", "step_id", "shown", "chosen", "written_text", "written_rating"),
    *("written_flagged", "written_corrected_rating", "comment", "active_ms"),
)
JUDGMENT = bulk_insert.BulkTable(
    Judgment,
    *("id", "turn_id", "option_id", "rating", "flagged", "category", "reason", "value", "rollouts", "successes"),
)
# Parents first.
TABLES = (PROBLEM, TRACE, STEP, OPTION, PART, ASSIGNMENT, SUBMISSION, TURN, JUDGMENT)


class NumberedRecord(NamedTuple):
    """A record, and how often an identical record came before it in the file."""

    record: TraceRecord
    occurrence: int


class ImportRows:
    """The collected rows by table, and the generators of their ids."""

    def __init__(self) -> None:
        self.by_table: dict[bulk_insert.BulkTable, list[bulk_insert.BulkRow]] = {table: [] for table in TABLES}
        ids = bulk_insert.new_ids([table.name for table in TABLES])
        self.new_id = {table: ids[table.name].__next__ for table in TABLES}

    def insert(self) -> None:
        for table, rows in self.by_table.items():
            table.insert(rows)
