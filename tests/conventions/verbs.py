"""Functions that write take keyword arguments and `now`; only entry points read the clock."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import (
    DOMAIN,
    ConventionRule,
    RuleExample,
    RuleFinding,
    dotted_name,
    is_ours,
    is_python,
    last_name,
    list_calls,
    list_functions,
    package_of,
    tree_of,
    walk_nodes,
    writing_calls,
)

# Entry points, which read the clock.
CLOCKED = ("views", "tasks", "commands", "middleware", "supervisor", "adapter", "authentication")
CLOCKS = {
    "timezone.now",
    "datetime.now",
    "dt.datetime.now",
    "datetime.datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "dt.date.today",
    "timezone.localdate",
    "time.time",
}
NOT_VERBS = ("models", "readers", "formats", "agreement", "selection", "evaluation", "management", "views", "backends")


def is_verbs(path: str) -> bool:
    """Return whether this is a module of the domain whose functions change rows."""
    parts = path.removesuffix(".py").split("/")
    return (
        is_python(path)
        and package_of(path) in DOMAIN
        and not set(parts) & set(NOT_VERBS)
        and parts[-1] not in {"apps", "admin", "urls", "tasks", "middleware", "adapter", "forms", "__init__"}
    )


def is_unclocked(path: str) -> bool:
    parts = path.removesuffix(".py").split("/")
    return is_ours(path) and not set(parts) & set(CLOCKED)


def find_clock_reads(path: str, text: str) -> Iterator[RuleFinding]:
    for function in list_functions(tree_of(text)):
        for call in list_calls(function):
            if dotted_name(call.func) in CLOCKS:
                yield RuleFinding(
                    function.name, call.lineno, f"`{dotted_name(call.func)}()`: take `now` from the caller"
                )


def find_writers(tree: ast.Module) -> set[str]:
    """Find the functions of a module that write rows, directly or through another function of the module."""
    bodies = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = {name for name, body in bodies.items() if any(writing_calls(body))}
    while True:
        more = {name for name, body in bodies.items() if {last_name(call.func) for call in list_calls(body)} & found}
        if more <= found:
            return found
        found |= more


def list_writing_functions(text: str) -> Iterator[ast.FunctionDef]:
    """List the public functions of a module that write rows."""
    tree = tree_of(text)
    writing = find_writers(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name in writing:
            yield node


def find_positional_parameters(path: str, text: str) -> Iterator[RuleFinding]:
    for verb in list_writing_functions(text):
        if verb.args.posonlyargs or verb.args.args:
            yield RuleFinding(verb.name, verb.lineno, f"`{verb.name}` writes: make its arguments keyword-only")


def find_functions_without_now(path: str, text: str) -> Iterator[RuleFinding]:
    for verb in list_writing_functions(text):
        if "now" not in {argument.arg for argument in (*verb.args.args, *verb.args.kwonlyargs)}:
            yield RuleFinding(verb.name, verb.lineno, f"`{verb.name}` writes: add a `now` argument")


def find_task_imports(path: str, text: str) -> Iterator[RuleFinding]:
    for node in walk_nodes(tree_of(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("tasks"):
            yield RuleFinding("import", node.lineno, "start background work by its name through `jobs`")


GOOD = "def claim(*, rater, now):\n    Assignment.objects.create(rater=rater, held_at=now)\n"

RULES = (
    ConventionRule(
        name="only entry points read the clock",
        looks_at=is_unclocked,
        find=find_clock_reads,
        good=(
            RuleExample("labeling/queue.py", GOOD),
            RuleExample("annotate/views.py", "def work(request):\n    return queue.claim(now=timezone.now())\n"),
        ),
        bad=(RuleExample("labeling/queue.py", "def claim(*, rater):\n    now = timezone.now()\n"),),
    ),
    ConventionRule(
        name="functions that write take keyword arguments",
        looks_at=is_verbs,
        find=find_positional_parameters,
        good=(RuleExample("labeling/queue.py", GOOD),),
        bad=(
            RuleExample("labeling/queue.py", GOOD.replace("*, ", "")),
            RuleExample(
                "people/members.py", "def join(user, *, now):\n    _row(user)\ndef _row(user):\n    user.save()\n"
            ),
        ),
    ),
    ConventionRule(
        name="functions that write take now",
        looks_at=is_verbs,
        find=find_functions_without_now,
        good=(RuleExample("labeling/queue.py", GOOD),),
        bad=(RuleExample("labeling/queue.py", "def drop(*, rater):\n    rater.delete()\n"),),
    ),
    ConventionRule(
        name="tasks are not imported",
        looks_at=is_ours,
        find=find_task_imports,
        good=(RuleExample("labeling/judging.py", "from jobs import work\n"),),
        bad=(RuleExample("labeling/judging.py", "from labeling.tasks import refresh\n"),),
    ),
)
