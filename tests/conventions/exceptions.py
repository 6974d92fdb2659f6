"""Places that break a rule on purpose, each with its reason. One that is no longer needed fails a test.

A key is the rule's name and `path` or `path::where`, where `where` is what the finding names (a function, a class).
"""

_TIME = "functions that write take now"
_KEYWORDS = "functions that write take keyword arguments"

ALLOWED: dict[tuple[str, str], str] = {
    ("only entry points read the clock", "config/metrics.py::show_metrics"): "a view in a module with another name",
    ("no signals", "events/apps.py::import"): "creates the append-only triggers after each migration",
    ("no signals", "labeling/apps.py::import"): "sets the fill factors of tables, which no model can state",
    (_TIME, "accounts/users.py::save_work_keys"): "a preference has no time",
    (_TIME, "events/append_only.py"): "creates triggers, not rows",
    (_KEYWORDS, "events/append_only.py"): "creates triggers, not rows",
    (_TIME, "events/audit_log.py::erase_origins"): "takes the time before which it erases",
    (_KEYWORDS, "events/audit_log.py::log_events"): "the events are its one subject",
    (_TIME, "events/backup.py"): "the caller records the time",
    (_TIME, "jobs/runner.py::run_job"): "runs for hours, so it takes a clock",
    (_KEYWORDS, "jobs/runner.py::run_job"): "every task passes a job and its handler",
    (_TIME, "labeling/quality/trace_counts.py::recount_traces"): "corrects a count that has no time",
    (_TIME, "labeling/quality/trace_counts.py::reset_trace_count"): "corrects a count that has no time",
    (_TIME, "labeling/queue/lanes.py::ensure_lane"): "a lane has no creation time",
    (_TIME, "labeling/table_storage.py"): "changes table storage, not rows",
    (_TIME, "labeling/traces/bulk_insert.py"): "the inserted rows carry their times",
    (_KEYWORDS, "labeling/traces/bulk_insert.py"): "a low-level insert of rows",
    ("times end in _at and booleans read as questions", "accounts/models.py::User.date_joined"): (
        "Django's user manager and admin expect this name"
    ),
    ("times end in _at and booleans read as questions", "events/models.py::Event.at"): "an event has one time",
    ("tests mirror the packages", "tests/stats/test_published_tables.py"): "published tables against every statistic",
    ("tests mirror the packages", "tests/labeling/management/test_csv_commands.py"): (
        "two commands that read one kind of file"
    ),
}
