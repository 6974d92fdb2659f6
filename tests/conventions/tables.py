"""Each table has one owner. Whoever else wants a row changed calls the owner's verb."""

import ast
import re
from collections.abc import Iterator

from tests.conventions.rule import ConventionRule, RuleExample, RuleFinding, is_ours, tree_of, walk_nodes, writing_calls

JUDGING = ("labeling/judging", "labeling/traces/")
# Model -> the room it is in, and the beginnings of the paths that may write it.
OWNERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "User": ("accounts", ("accounts/",)),
    "LoginLink": ("accounts", ("accounts/login_links.py",)),
    "Repeatable": ("api", ("api/idempotency.py",)),
    "ApiToken": ("accounts", ("accounts/api_tokens.py",)),
    "Event": ("events", ("events/audit_log.py",)),
    "EventOrigin": ("events", ("events/audit_log.py",)),
    "Job": ("jobs", ("jobs/",)),
    "Membership": ("people", ("people/members.py",)),
    "Invitation": ("people", ("people/invitations.py",)),
    "WorkerId": ("people", ("people/crowd_workers.py", "people/members.py")),
    "Project": ("labeling", ("labeling/projects/lifecycle.py",)),
    **dict.fromkeys(("Guideline", "ConsentText"), ("labeling", ("labeling/projects/lifecycle.py",))),
    "Rater": ("labeling", ("labeling/raters.py", "labeling/onboarding/")),
    **dict.fromkeys(
        ("Consent", "GuidelineReading", "Lesson", "ScreeningResult"), ("labeling", ("labeling/onboarding/",))
    ),
    **dict.fromkeys(("Source", "Provenance", "Problem", "Step", "Option", "Part"), ("labeling", ("labeling/traces/",))),
    "BenchmarkProblem": ("labeling", ("labeling/benchmarks/",)),
    **dict.fromkeys(("Lane", "Draw", "QueueEntry", "QueueReader", "AddedSlot"), ("labeling", ("labeling/queue",))),
    # Whether a trace is handed out is the queue's to say; its texts never change.
    "Trace": ("labeling", ("labeling/traces/", "labeling/queue/lane_entries.py")),
    # States up to the submission are the queue's, the submission is judging's; what a file brings is finished.
    "Assignment": ("labeling", ("labeling/queue", *JUDGING)),
    **dict.fromkeys(
        ("Turn", "Judgment", "Write"),
        ("labeling", ("labeling/judging", "labeling/traces/", "labeling/queue/record.sql")),
    ),
    **dict.fromkeys(("Submission", "CorrectionRequest"), ("labeling", ("labeling/judging", "labeling/traces/"))),
    **dict.fromkeys(
        ("Gold", "GoldRating", "GoldAnswer", "Tally", "Settlement", "Report", "Consensus", "Figures", "DailyFigures"),
        ("labeling", ("labeling/quality",)),
    ),
    "PRM": ("prm", ("prm/registry.py",)),
    "Score": ("prm", ("prm/scores.py",)),
    "Use": ("prm", ("prm/inference.py",)),
    "Generation": ("prm", ("prm/generations.py",)),
    "LoopRules": ("prm", ("prm/loop_rules.py",)),
    **dict.fromkeys(("Snapshot", "Shard", "SnapshotFile"), ("exports", ("exports/snapshots.py",))),
    "Delivery": ("exports", ("exports/deliveries.py",)),
    "Statement": ("exports", ("exports/disclosures.py",)),
    **dict.fromkeys(("Manifest", "ManifestRow"), ("labeling", ("labeling/manifest",))),
}
TABLES = {f"{room}_{model.lower()}": owners for model, (room, owners) in OWNERS.items()}
STATEMENT = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+\"?(\w+)\"?", re.I)


def find_foreign_writes(path: str, text: str) -> Iterator[RuleFinding]:
    tree = tree_of(text)
    for call, spelled in writing_calls(tree):
        model = spelled.partition(".objects")[0]
        if model in OWNERS and ".objects" in spelled and not path.startswith(OWNERS[model][1]):
            yield RuleFinding(model, call.lineno, f"`{spelled}`: rows of {model} are changed by {OWNERS[model][1][0]}")
    for constant in (
        node for node in walk_nodes(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ):
        yield from _written(path, str(constant.value), constant.lineno)


def trespassing_in_sql(path: str, text: str) -> Iterator[RuleFinding]:
    for number, line in enumerate(text.splitlines(), start=1):
        yield from _written(path, line, number)


def is_sql(path: str) -> bool:
    return path.endswith(".sql")


def _written(path: str, sql: str, line: int) -> Iterator[RuleFinding]:
    for table in STATEMENT.findall(sql):
        if table in TABLES and not path.startswith(TABLES[table]):
            yield RuleFinding(table, line, f"rows of {table} are changed by {TABLES[table][0]}")


RULES = (
    ConventionRule(
        name="a table is changed by its owner alone",
        looks_at=is_ours,
        find=find_foreign_writes,
        good=(
            RuleExample(
                "labeling/queue/lane_entries.py", "QueueEntry.objects.filter(lane=lane).update(slots_left=0)\n"
            ),
            RuleExample("labeling/assignments/submit.py", "QueueEntry.objects.filter(lane=lane).exists()\n"),
            RuleExample("labeling/queue/claim.py", "SQL = 'UPDATE labeling_queueentry SET slots_left = 1'\n"),
        ),
        bad=(
            RuleExample(
                "labeling/assignments/submit.py", "QueueEntry.objects.filter(lane=lane).update(slots_left=0)\n"
            ),
            RuleExample("demo/make_projects.py", "Trace.objects.create(project=project)\n"),
            RuleExample("labeling/assignments/sql.py", "SQL = 'UPDATE \"labeling_queueentry\" SET slots_left = 1'\n"),
        ),
    ),
    ConventionRule(
        name="a file of SQL changes its owner's tables alone",
        looks_at=is_sql,
        find=trespassing_in_sql,
        good=(RuleExample("labeling/queue/claim.sql", "UPDATE labeling_queueentry SET slots_left = 1\n"),),
        bad=(RuleExample("labeling/assignments/submit.sql", "UPDATE labeling_queueentry SET slots_left = 1\n"),),
    ),
)
