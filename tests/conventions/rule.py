"""The type of a rule, and helpers to find and parse the files that it checks."""

import ast
import functools
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = ("static/vendor/", "tests/journeys/vendor/", "requirements", "LICENSE")
PACKAGES = frozenset(
    {
        "accounts",
        "rawsql",
        "outbound",
        "events",
        "jobs",
        "labeling",
        "people",
        "prm",
        "machines",
        "live",
        "exports",
        "notices",
        "privacy",
        "annotate",
        "dashboard",
        "api",
        "demo",
        "supervisor",
        "host",
        "dependencies",
        "stats",
        "formats",
        "charts",
        "config",
    }
)
# The packages whose verbs change data: below the surfaces.
DOMAIN = frozenset(
    {
        "accounts",
        "events",
        "jobs",
        "labeling",
        "people",
        "prm",
        "machines",
        "live",
        "exports",
        "notices",
        "privacy",
        "demo",
    }
)


@dataclass(frozen=True)
class RuleFinding:
    """A place that breaks a rule. `where` is a name that survives edits: exceptions are written with it."""

    where: str
    line: int
    what: str


@dataclass(frozen=True)
class RuleExample:
    path: str
    text: str


@dataclass(frozen=True)
class ConventionRule:
    name: str  # reads as a sentence
    looks_at: Callable[[str], bool]
    find: Callable[[str, str], Iterable[RuleFinding]]
    good: tuple[RuleExample, ...]
    bad: tuple[RuleExample, ...]

    def findings(self, path: str, text: str) -> list[RuleFinding]:
        return list(self.find(path, text)) if self.looks_at(path) else []


@functools.cache
def list_files() -> tuple[str, ...]:
    """List every file that is committed, or would be."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True
    )
    names = listed.stdout.split("\0") if listed.returncode == 0 else list(_walked())
    return tuple(sorted(name for name in names if (ROOT / name).is_file() and not name.startswith(NOT_OURS)))


def _walked() -> Iterator[str]:
    """List all files outside hidden and built folders, for a copy without git."""
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and not any(part.startswith(".") or part in {"data", "build"} for part in parts[:-1]):
            yield "/".join(parts)


@functools.cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


@functools.lru_cache(maxsize=1024)
def tree_of(text: str) -> ast.Module:
    return ast.parse(text)


@functools.cache
def walk_nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """Return the node and all nodes below it. Cached, because every rule walks the same trees."""
    return tuple(ast.walk(node))


def package_of(path: str) -> str:
    return path.split("/", 1)[0]


def is_python(path: str) -> bool:
    return path.endswith(".py") and "/migrations/" not in path


def is_ours(path: str) -> bool:
    """Return whether the file is product code: neither a test nor a benchmark."""
    return is_python(path) and package_of(path) in PACKAGES


def list_functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in walk_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def list_calls(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in walk_nodes(node) if isinstance(each, ast.Call))


def dotted_name(node: ast.AST) -> str:
    """Return the dotted name of an expression (`a.b.c`), without calls and subscripts in between."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}".lstrip(".")
    if isinstance(node, ast.Call):
        return dotted_name(node.func)
    if isinstance(node, ast.Subscript):
        return dotted_name(node.value)
    return ""


def last_name(node: ast.AST) -> str:
    return dotted_name(node).rpartition(".")[2]


def writing_calls(node: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Return the calls that change rows, by Django or by a database cursor."""
    for call in list_calls(node):
        if isinstance(call.func, ast.Attribute) and call.func.attr in WRITES and not _is_of_a_container(call):
            yield call, dotted_name(call.func)


def _is_of_a_container(call: ast.Call) -> bool:
    """Return whether a call such as `digest.update(data)` or `table.copy()` changes no row: a queryset's update has
    keywords, and a cursor's copy has SQL."""
    if dotted_name(call.func) == "copy.copy":
        return True
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return (name == "update" and bool(call.args)) or (name == "copy" and not call.args)


WRITES = frozenset(
    {"save", "create", "update", "delete", "bulk_create", "bulk_update", "get_or_create", "update_or_create"}
    | {"asave", "acreate", "aupdate", "adelete", "abulk_create", "aget_or_create", "aupdate_or_create"}
    | {"execute", "executemany", "copy", "set_password"}
)
