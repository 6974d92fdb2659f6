"""Public verbs are keyword-only, are told the time, and never look at a clock themselves."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import (
    DOMAIN,
    Example,
    Finding,
    Rule,
    below,
    calls,
    dotted,
    functions,
    is_ours,
    is_python,
    last_name,
    room_of,
    tree_of,
    written_calls,
)

# Where the outside world comes in, and with it the time.
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
    """The modules of the domain whose functions change rows."""
    parts = path.removesuffix(".py").split("/")
    return (
        is_python(path)
        and room_of(path) in DOMAIN
        and not set(parts) & set(NOT_VERBS)
        and parts[-1] not in {"apps", "admin", "urls", "tasks", "middleware", "adapter", "forms", "__init__"}
    )


def is_unclocked(path: str) -> bool:
    parts = path.removesuffix(".py").split("/")
    return is_ours(path) and not set(parts) & set(CLOCKED)


def reading_the_clock(path: str, text: str) -> Iterator[Finding]:
    for function in functions(tree_of(text)):
        for call in calls(function):
            if dotted(call.func) in CLOCKS:
                yield Finding(function.name, call.lineno, f"`{dotted(call.func)}()`: be told `now` by the caller")


def writers(tree: ast.Module) -> set[str]:
    """Functions of a module that write, themselves or through another function of the same module."""
    bodies = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = {name for name, body in bodies.items() if any(written_calls(body))}
    while True:
        more = {name for name, body in bodies.items() if {last_name(call.func) for call in calls(body)} & found}
        if more <= found:
            return found
        found |= more


def verbs(text: str) -> Iterator[ast.FunctionDef]:
    """Public functions of a module that write rows."""
    tree = tree_of(text)
    writing = writers(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name in writing:
            yield node


def positional(path: str, text: str) -> Iterator[Finding]:
    for verb in verbs(text):
        if verb.args.posonlyargs or verb.args.args:
            yield Finding(verb.name, verb.lineno, f"`{verb.name}` writes: make its arguments keyword-only")


def untimed(path: str, text: str) -> Iterator[Finding]:
    for verb in verbs(text):
        if "now" not in {argument.arg for argument in (*verb.args.args, *verb.args.kwonlyargs)}:
            yield Finding(verb.name, verb.lineno, f"`{verb.name}` writes: tell it `now`")


def excusing(path: str, text: str) -> Iterator[Finding]:
    for node in below(tree_of(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("tasks"):
            yield Finding("import", node.lineno, "ask for background work by its name through `jobs`")


GOOD = "def claim(*, rater, now):\n    Assignment.objects.create(rater=rater, held_at=now)\n"

RULES = (
    Rule(
        name="nobody but the edge of the house reads the clock",
        looks_at=is_unclocked,
        find=reading_the_clock,
        good=(
            Example("labeling/queue.py", GOOD),
            Example("annotate/views.py", "def work(request):\n    return queue.claim(now=timezone.now())\n"),
        ),
        bad=(Example("labeling/queue.py", "def claim(*, rater):\n    now = timezone.now()\n"),),
    ),
    Rule(
        name="verbs take their arguments by keyword",
        looks_at=is_verbs,
        find=positional,
        good=(Example("labeling/queue.py", GOOD),),
        bad=(
            Example("labeling/queue.py", GOOD.replace("*, ", "")),
            Example("people/members.py", "def join(user, *, now):\n    _row(user)\ndef _row(user):\n    user.save()\n"),
        ),
    ),
    Rule(
        name="verbs are told the time",
        looks_at=is_verbs,
        find=untimed,
        good=(Example("labeling/queue.py", GOOD),),
        bad=(Example("labeling/queue.py", "def drop(*, rater):\n    rater.delete()\n"),),
    ),
    Rule(
        name="nobody imports tasks",
        looks_at=is_ours,
        find=excusing,
        good=(Example("labeling/judging.py", "from jobs import work\n"),),
        bad=(Example("labeling/judging.py", "from labeling.tasks import refresh\n"),),
    ),
)
