"""Each table has one owner. Whoever else wants a row changed calls the owner's verb."""

import ast
import re
from collections.abc import Iterator

from tests.conventions.rule import Example, Finding, Rule, below, is_ours, tree_of, written_calls

JUDGING = ("labeling/judging", "labeling/importing/")
# Model -> the room it is in, and the beginnings of the paths that may write it.
OWNERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "User": ("accounts", ("accounts/",)),
    "LoginLink": ("accounts", ("accounts/links.py",)),
    "Repeatable": ("api", ("api/repeats.py",)),
    "ApiToken": ("accounts", ("accounts/api_tokens.py",)),
    "Event": ("events", ("events/log.py",)),
    "EventOrigin": ("events", ("events/log.py",)),
    "Job": ("jobs", ("jobs/",)),
    "Membership": ("people", ("people/members.py",)),
    "Invitation": ("people", ("people/invitations.py",)),
    "WorkerId": ("people", ("people/workers.py", "people/members.py")),
    "Project": ("labeling", ("labeling/projects.py",)),
    **dict.fromkeys(("Guideline", "ConsentText"), ("labeling", ("labeling/projects.py",))),
    "Rater": ("labeling", ("labeling/raters.py", "labeling/admission/")),
    **dict.fromkeys(
        ("Consent", "GuidelineReading", "Lesson", "ScreeningResult"), ("labeling", ("labeling/admission/",))
    ),
    **dict.fromkeys(
        ("Source", "Provenance", "Problem", "Step", "Option", "Part"), ("labeling", ("labeling/importing/",))
    ),
    "BenchmarkProblem": ("labeling", ("labeling/benchmarks/",)),
    **dict.fromkeys(("Lane", "Draw", "QueueEntry", "QueueReader", "AddedSlot"), ("labeling", ("labeling/queue",))),
    # Whether a trace is handed out is the queue's to say; its texts never change.
    "Trace": ("labeling", ("labeling/importing/", "labeling/queue/filling.py")),
    # States up to the submission are the queue's, the submission is judging's; what a file brings is finished.
    "Assignment": ("labeling", ("labeling/queue", *JUDGING)),
    **dict.fromkeys(
        ("Turn", "Judgment", "Write"),
        ("labeling", ("labeling/judging", "labeling/importing/", "labeling/queue/record.sql")),
    ),
    **dict.fromkeys(("Submission", "CorrectionRequest"), ("labeling", ("labeling/judging", "labeling/importing/"))),
    **dict.fromkeys(
        ("Gold", "GoldRating", "GoldAnswer", "Tally", "Settlement", "Report", "Consensus", "Figures", "DailyFigures"),
        ("labeling", ("labeling/quality",)),
    ),
    "PRM": ("prm", ("prm/registry.py",)),
    "Score": ("prm", ("prm/scores.py",)),
    "Use": ("prm", ("prm/using.py",)),
    "Generation": ("prm", ("prm/generations.py",)),
    "LoopRules": ("prm", ("prm/rules.py",)),
    **dict.fromkeys(("Snapshot", "Shard", "SnapshotFile"), ("exports", ("exports/snapshots.py",))),
    "Delivery": ("exports", ("exports/deliveries.py",)),
    "Statement": ("exports", ("exports/statements.py",)),
    **dict.fromkeys(("Manifest", "ManifestRow"), ("labeling", ("labeling/manifest",))),
}
TABLES = {f"{room}_{model.lower()}": owners for model, (room, owners) in OWNERS.items()}
STATEMENT = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+\"?(\w+)\"?", re.I)


def trespassing(path: str, text: str) -> Iterator[Finding]:
    tree = tree_of(text)
    for call, spelled in written_calls(tree):
        model = spelled.partition(".objects")[0]
        if model in OWNERS and ".objects" in spelled and not path.startswith(OWNERS[model][1]):
            yield Finding(model, call.lineno, f"`{spelled}`: rows of {model} are changed by {OWNERS[model][1][0]}")
    for constant in (node for node in below(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield from _written(path, str(constant.value), constant.lineno)


def trespassing_in_sql(path: str, text: str) -> Iterator[Finding]:
    for number, line in enumerate(text.splitlines(), start=1):
        yield from _written(path, line, number)


def is_sql(path: str) -> bool:
    return path.endswith(".sql")


def _written(path: str, sql: str, line: int) -> Iterator[Finding]:
    for table in STATEMENT.findall(sql):
        if table in TABLES and not path.startswith(TABLES[table]):
            yield Finding(table, line, f"rows of {table} are changed by {TABLES[table][0]}")


RULES = (
    Rule(
        name="a table is changed by its owner alone",
        looks_at=is_ours,
        find=trespassing,
        good=(
            Example("labeling/queue/filling.py", "QueueEntry.objects.filter(lane=lane).update(slots_left=0)\n"),
            Example("labeling/judging/submit.py", "QueueEntry.objects.filter(lane=lane).exists()\n"),
            Example("labeling/queue/taking.py", "SQL = 'UPDATE labeling_queueentry SET slots_left = 1'\n"),
        ),
        bad=(
            Example("labeling/judging/submit.py", "QueueEntry.objects.filter(lane=lane).update(slots_left=0)\n"),
            Example("demo/make.py", "Trace.objects.create(project=project)\n"),
            Example("labeling/judging/sql.py", "SQL = 'UPDATE \"labeling_queueentry\" SET slots_left = 1'\n"),
        ),
    ),
    Rule(
        name="a file of SQL changes its owner's tables alone",
        looks_at=is_sql,
        find=trespassing_in_sql,
        good=(Example("labeling/queue/claim.sql", "UPDATE labeling_queueentry SET slots_left = 1\n"),),
        bad=(Example("labeling/judging/submit.sql", "UPDATE labeling_queueentry SET slots_left = 1\n"),),
    ),
)
