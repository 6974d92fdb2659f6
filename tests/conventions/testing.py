"""Tests mirror the packages and do not mock our own code."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.conventions.rule import (
    PACKAGES,
    ROOT,
    ConventionRule,
    RuleExample,
    RuleFinding,
    dotted_name,
    is_python,
    tree_of,
    walk_nodes,
)

# Folders of tests that mirror no package, and why.
APART = {
    "conventions": "rules about the whole tree",
    "journeys": "walks through the pages in a browser",
    "commands": "./run, ./test and other files in the root",
    "faults": "kills processes at random moments",
    "attacks": "what a stranger or a curious member may try",
    "campaign": "whole labeling campaigns over HTTP",
    "trainers": "reads snapshots with trainers, in their own environment",
}


def is_test(path: str) -> bool:
    return is_python(path) and path.startswith("tests/")


def find_mocks(path: str, text: str) -> Iterator[RuleFinding]:
    for node in walk_nodes(tree_of(text)):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
            if any(name in {"mock", "unittest.mock", "pytest_mock"} for name in names):
                yield RuleFinding("mock", node.lineno, "use the real part, or a fake that speaks the real protocol")
        elif (
            isinstance(node, ast.Call)
            and dotted_name(node.func).endswith("monkeypatch.setattr")
            and _replaces_ours(node)
        ):
            yield RuleFinding("setattr", node.lineno, "replaces our own code")


def _replaces_ours(call: ast.Call) -> bool:
    target = call.args[0]
    name = getattr(call.args[1], "value", "") if not isinstance(target, ast.Constant) else str(target.value)
    if str(name).rpartition(".")[2].isupper():  # a limit that a test makes small is not a piece of code
        return False
    if isinstance(target, ast.Constant):
        return str(target.value).split(".")[0] in PACKAGES
    return isinstance(call.args[1], ast.Constant) and not dotted_name(target).startswith(("settings", "sys", "os"))


def find_misplaced_tests(path: str, text: str) -> Iterator[RuleFinding]:
    place = PurePosixPath(path)
    folder, stem = place.parent.relative_to("tests"), place.stem.removeprefix("test_")
    if not place.name.startswith("test_") or not folder.parts or folder.parts[0] in APART:
        return
    if not (ROOT / folder).is_dir():
        yield RuleFinding("folder", 1, f"there is no package {folder}")
    elif not any(f"{stem}_".startswith(f"{name}_") for name in _modules(str(folder))):
        yield RuleFinding("module", 1, f"no module of {folder} is called {stem}, and no module name is a prefix of it")


def _modules(folder: str) -> set[str]:
    """Return the names that a test's name may begin with: modules and packages of the folder, and the folder itself."""
    here = ROOT / folder
    below = {each.stem for each in here.iterdir() if each.suffix == ".py" or (each / "__init__.py").is_file()}
    commands = {each.stem for each in (here / "management" / "commands").glob("*.py")}
    return (below | commands | {here.name}) - {"__init__"}


RULES = (
    ConventionRule(
        name="tests do not mock our own code",
        looks_at=is_test,
        find=find_mocks,
        good=(
            RuleExample("tests/labeling/test_queue.py", "def test_x(monkeypatch):\n    monkeypatch.setenv('A', 'b')\n"),
            RuleExample(
                "tests/labeling/test_queue.py", "def test_x(monkeypatch):\n    monkeypatch.setattr(q, '_LIMIT', 2)\n"
            ),
        ),
        bad=(
            RuleExample("tests/labeling/test_queue.py", "from unittest import mock\nfrom unittest.mock import patch\n"),
            RuleExample("tests/labeling/test_queue.py", "def test_x(m):\n    m.monkeypatch.setattr('labeling.q', 1)\n"),
            RuleExample(
                "tests/labeling/test_queue.py", "def test_x(monkeypatch):\n    monkeypatch.setattr(queue, 'a', 1)\n"
            ),
        ),
    ),
    ConventionRule(
        name="tests mirror the packages",
        looks_at=is_test,
        find=find_misplaced_tests,
        good=(
            RuleExample("tests/labeling/test_models.py", ""),
            RuleExample("tests/config/test_env.py", ""),
            RuleExample("tests/test_docs.py", ""),
        ),
        bad=(RuleExample("tests/nowhere/test_x.py", ""), RuleExample("tests/labeling/test_unheard_of.py", "")),
    ),
)
