"""Places that break a rule on purpose, each with its reason. One that is no longer needed fails a test.

A key is the rule's name and `path` or `path::where`, where `where` is what the finding names (a function, a class).
"""

ALLOWED: dict[tuple[str, str], str] = {
    ("no signals", "events/apps.py::import"): (
        "locks tables after every migration; a migration of another app cannot know them"
    ),
    ("verbs are told the time", "accounts/users.py::choose_keys"): "what a person likes has no time",
    ("no signals", "labeling/apps.py::import"): "no model can say how tightly PostgreSQL packs a table",
    ("verbs are told the time", "labeling/table_storage.py"): "says how tables are packed; no row of them has a time",
    ("verbs are told the time", "events/append_only.py"): "puts locks on tables; no row of it has a time",
    ("verbs take their arguments by keyword", "events/append_only.py"): "puts locks on tables; not a verb of people",
    ("nobody but the edge of the house reads the clock", "config/metrics.py::metrics"): "a view by another name",
    ("verbs are told the time", "jobs/runner.py::run"): "goes on for hours: it is told a clock",
    ("verbs take their arguments by keyword", "jobs/runner.py::run"): "a job and its handler, in every task's one line",
    ("verbs are told the time", "events/backup.py"): "looks at the columns of tables; changes no row",
    ("verbs are told the time", "labeling/quality/trace_counts.py::recount"): "a number that is put right has no time",
    (
        "verbs are told the time",
        "labeling/quality/trace_counts.py::start_anew",
    ): "a number that is put right has no time",
    ("verbs are told the time", "labeling/traces/bulk_insert.py"): "carries rows that know their times",
    ("verbs take their arguments by keyword", "labeling/traces/bulk_insert.py"): "carries rows; not a verb of people",
    ("verbs are told the time", "events/audit_log.py::erase_origins"): "is told the time before which it erases",
    ("verbs take their arguments by keyword", "events/audit_log.py::append_many"): "its one subject comes first",
    ("verbs are told the time", "labeling/queue/lanes.py::of_arm"): "a lane that is made has no time",
    (
        "times end in _at and booleans ask",
        "accounts/models.py::User.date_joined",
    ): "Django's user manager and admin expect this name",
    (
        "times end in _at and booleans ask",
        "events/models.py::Event.at",
    ): "the one time of an event, not the time of a part",
    (
        "classes use the glossary's words",
        "stats/estimation.py::Sample",
    ): "a sample in the sense of statistics",
    (
        "tests mirror the packages",
        "tests/labeling/queue/test_eligibility.py",
    ): "holds `queue.refusals`, `stations` and claim.sql against each other",
    (
        "tests mirror the packages",
        "tests/labeling/queue/test_persist.py",
    ): "holds `queue` and `judging` against each other",
    (
        "tests mirror the packages",
        "tests/stats/test_published_tables.py",
    ): "published tables against every statistic",
    (
        "tests mirror the packages",
        "tests/labeling/management/test_csv_commands.py",
    ): "two commands that read one kind of file",
    ("classes use the glossary's words", "prm/backends/builtin.py::Scorer"): "what is inside a PRM of this backend",
}
