"""Soft size limits. An exception carries a reason; never split a module only to satisfy a limit."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import ConventionRule, RuleExample, RuleFinding, is_python, list_functions, tree_of

FILE_LINES = {".py": 500, ".html": 300, ".js": 500, ".css": 700, "": 300}
FUNCTION_LINES = 60
TEMPLATE_LINE = 140


def file_kind(path: str) -> str | None:
    name = path.rpartition("/")[2]
    ending = f".{name.rpartition('.')[2]}" if "." in name else ""
    return ending if ending in FILE_LINES and "/migrations/" not in path and not path.startswith("docs/") else None


def find_long_files(path: str, text: str) -> Iterator[RuleFinding]:
    limit, lines = FILE_LINES[file_kind(path) or ""], text.count("\n")
    if lines > limit:
        yield RuleFinding("file", lines, f"{lines} lines, {limit} allowed: split by idea")


def function_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def find_long_functions(path: str, text: str) -> Iterator[RuleFinding]:
    for function in list_functions(tree_of(text)):
        if function_length(function) > FUNCTION_LINES:
            yield RuleFinding(
                function.name, function.lineno, f"{function_length(function)} lines, {FUNCTION_LINES} allowed"
            )


def find_long_template_lines(path: str, text: str) -> Iterator[RuleFinding]:
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > TEMPLATE_LINE:
            yield RuleFinding(line.strip()[:40], number, f"{len(line)} characters, {TEMPLATE_LINE} allowed")


RULES = (
    ConventionRule(
        name="files stay short",
        looks_at=lambda path: file_kind(path) is not None,
        find=find_long_files,
        good=(RuleExample("labeling/queue.py", "x = 1\n" * 500), RuleExample("static/css/a.css", "a {}\n" * 700)),
        bad=(RuleExample("labeling/queue.py", "x = 1\n" * 501), RuleExample("run", "x\n" * 301)),
    ),
    ConventionRule(
        name="functions stay short",
        looks_at=is_python,
        find=find_long_functions,
        good=(RuleExample("labeling/queue.py", "def f():\n" + "    x = 1\n" * 59),),
        bad=(RuleExample("labeling/queue.py", "def f():\n" + "    x = 1\n" * 60),),
    ),
    ConventionRule(
        name="lines of templates stay short",
        looks_at=lambda path: path.startswith("templates/") and path.endswith(".html"),
        find=find_long_template_lines,
        good=(RuleExample("templates/a.html", "x" * 140 + "\n"),),
        bad=(RuleExample("templates/a.html", "x" * 141 + "\n"),),
    ),
)
