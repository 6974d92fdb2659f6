"""What fits on a screen fits in a head."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import Example, Finding, Rule, functions, is_python, tree_of

FILE_LINES = {".py": 300, ".html": 300, ".js": 300, ".css": 600, "": 300}
FUNCTION_LINES = 40  # hard; under 20 is usual


def kind(path: str) -> str | None:
    name = path.rpartition("/")[2]
    ending = f".{name.rpartition('.')[2]}" if "." in name else ""
    return ending if ending in FILE_LINES and "/migrations/" not in path and not path.startswith("docs/") else None


def long_file(path: str, text: str) -> Iterator[Finding]:
    limit, lines = FILE_LINES[kind(path) or ""], text.count("\n")
    if lines > limit:
        yield Finding("file", lines, f"{lines} lines, {limit} allowed: split by idea")


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def long_function(path: str, text: str) -> Iterator[Finding]:
    for function in functions(tree_of(text)):
        if length(function) > FUNCTION_LINES:
            yield Finding(function.name, function.lineno, f"{length(function)} lines, {FUNCTION_LINES} allowed")


def share_of_short_functions(texts: list[str], limit: int = 20) -> float:
    lengths = [length(function) for text in texts for function in functions(tree_of(text))]
    return sum(each <= limit for each in lengths) / len(lengths)


RULES = (
    Rule(
        name="files stay short",
        looks_at=lambda path: kind(path) is not None,
        find=long_file,
        good=(Example("labeling/queue.py", "x = 1\n" * 300), Example("static/css/a.css", "a {}\n" * 600)),
        bad=(Example("labeling/queue.py", "x = 1\n" * 301), Example("run", "x\n" * 301)),
    ),
    Rule(
        name="functions stay short",
        looks_at=is_python,
        find=long_function,
        good=(Example("labeling/queue.py", "def f():\n" + "    x = 1\n" * 39),),
        bad=(Example("labeling/queue.py", "def f():\n" + "    x = 1\n" * 40),),
    ),
)
