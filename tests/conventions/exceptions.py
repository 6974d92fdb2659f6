"""Places that break a rule on purpose, each with its reason. An exception that is no longer needed fails a test.

A key is the rule's name and `path` or `path::where`, where `where` is what the finding names (a function, a class).
"""

_TIME = "functions that write take now"
_KEYWORDS = "functions that write take keyword arguments"

ALLOWED: dict[tuple[str, str], str] = {
    ("only entry points read the clock", "config/health.py::show_metrics"): "a view in a module with another name",
    ("only entry points read the clock", "accounts/rate_limits.py::limit_request"): "it is a part of views",
    ("only entry points read the clock", "accounts/login.py::pre_authenticate"): "allauth calls it",
    ("only entry points read the clock", "accounts/login.py::authenticate"): "allauth calls it",
    ("files stay short", "exports/card.py"): "one document, in the order of its sections",
    ("files stay short", "labeling/traces/trace_rows.py"): "all rows of a chunk: traces, steps, options, submissions",
    ("only entry points read the clock", "jobs/scheduler.py::list_tasks_with_work"): "the beat calls it",
    ("only entry points read the clock", "dashboard/render.py::csv_response"): "a view that many pages share",
    (
        "only entry points read the clock",
        "accounts/login.py::_log_login_event",
    ): "allauth gives no time",
    ("only entry points read the clock", "dependencies/audit.py::_is_too_old"): "part of a program of its own",
    ("views do not write", "accounts/views/security.py::confirm"): "allauth's form records the use of a factor",
    ("no signals", "events/apps.py::import"): "creates the append-only triggers after each migration",
    ("no signals", "labeling/apps.py::import"): "sets the fill factors of tables, which no model can state",
    **dict.fromkeys(
        [
            ("only entry points read the clock", f"accounts/{name}")
            for name in (
                "confirmation.py::is_recent",
                "confirmation.py::record_confirmation",
                "confirmation.py::_log_event",
                "forms.py::_check_passkey",
                "forms.py::clean_code",
            )
        ],
        "it is a part of views",
    ),
    **dict.fromkeys(
        [
            ("only entry points read the clock", f"accounts/{name}")
            for name in (
                "login.py::send_notification_mail",
                "sessions.py::_load_user",
                "single_sign_on.py::_add_identity",
                "single_sign_on.py::_check_claims",
                "single_sign_on.py::on_authentication_error",
                "single_sign_on.py::pre_social_login",
                "single_sign_on.py::save_user",
            )
        ],
        "allauth or Django calls it",
    ),
    ("only entry points read the clock", "people/group_roles.py::synchronize_roles"): "a login calls it",
    (_TIME, "accounts/sessions.py::delete_sessions"): "a deleted session has no time",
    (_TIME, "accounts/users.py::save_work_keys"): "a preference has no time",
    (_TIME, "accounts/users.py::save_break_minutes"): "a preference has no time",
    (_TIME, "events/append_only.py"): "creates triggers, not rows",
    (_TIME, "privacy/mentions.py::replace_mentions"): "replaces texts, which have no time of their own",
    (_KEYWORDS, "events/audit_log.py::log_events"): "the events are its one subject",
    (_TIME, "jobs/runner.py::run_job"): "runs for hours, so it takes a clock",
    (_KEYWORDS, "jobs/runner.py::run_job"): "every task passes a job and its handler",
    (_TIME, "labeling/quality/project_stats.py::recount_traces"): "corrects a count that has no time",
    (_TIME, "labeling/quality/project_stats.py::reset_trace_count"): "corrects a count that has no time",
    (_TIME, "labeling/queue/slots.py::ensure_lane"): "a lane has no creation time",
    (_TIME, "labeling/queue/pairs.py::record_imported_readers"): "which half a labeler rated has no time of its own",
    (_TIME, "labeling/queue/pairs.py::record_reviewed_halves"): "as above",
    (_TIME, "labeling/queue/pairs.py::reserve_half"): "as above",
    (_TIME, "labeling/traces/trace_rows.py::lock_project_import"): "takes a lock, changes no row",
    (_KEYWORDS, "labeling/traces/trace_rows.py::lock_project_import"): "takes a lock, changes no row",
    ("times end in _at and booleans read as questions", "accounts/models.py::User.date_joined"): (
        "Django's user manager and admin expect this name"
    ),
    ("times end in _at and booleans read as questions", "events/models.py::Event.at"): "an event has one time",
}
