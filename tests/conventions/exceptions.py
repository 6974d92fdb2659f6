"""Places that break a rule on purpose, each with its reason. One that is no longer needed fails a test.

A key is the rule's name and `path` or `path::where`, where `where` is what the finding names (a function, a class).
"""

_TIME = "functions that write take now"
_KEYWORDS = "functions that write take keyword arguments"

ALLOWED: dict[tuple[str, str], str] = {
    ("only entry points read the clock", "config/health.py::show_metrics"): "a view in a module with another name",
    ("only entry points read the clock", "accounts/rate_limits.py::limit_request"): "it is a part of views",
    ("only entry points read the clock", "accounts/login.py::pre_authenticate"): "allauth calls it",
    ("only entry points read the clock", "accounts/login.py::authenticate"): "allauth calls it",
    ("only entry points read the clock", "dashboard/render.py::csv_response"): "a view that many pages share",
    (
        "only entry points read the clock",
        "accounts/login.py::_log_login_event",
    ): "allauth gives no time",
    ("no signals", "events/apps.py::import"): "creates the append-only triggers after each migration",
    ("no signals", "labeling/apps.py::import"): "sets the fill factors of tables, which no model can state",
    (_TIME, "accounts/users.py::save_work_keys"): "a preference has no time",
    (_TIME, "accounts/users.py::save_break_minutes"): "a preference has no time",
    (_TIME, "events/append_only.py"): "creates triggers, not rows",
    (_KEYWORDS, "events/audit_log.py::log_events"): "the events are its one subject",
    (_TIME, "jobs/runner.py::run_job"): "runs for hours, so it takes a clock",
    (_KEYWORDS, "jobs/runner.py::run_job"): "every task passes a job and its handler",
    (_TIME, "labeling/quality/project_stats.py::recount_traces"): "corrects a count that has no time",
    (_TIME, "labeling/quality/project_stats.py::reset_trace_count"): "corrects a count that has no time",
    (_TIME, "labeling/queue/slots.py::ensure_lane"): "a lane has no creation time",
    (_TIME, "labeling/traces/trace_rows.py::lock_project_import"): "takes a lock, changes no row",
    (_KEYWORDS, "labeling/traces/trace_rows.py::lock_project_import"): "takes a lock, changes no row",
    ("times end in _at and booleans read as questions", "accounts/models.py::User.date_joined"): (
        "Django's user manager and admin expect this name"
    ),
    ("times end in _at and booleans read as questions", "events/models.py::Event.at"): "an event has one time",
}
