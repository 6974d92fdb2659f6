"""Modules are nouns of activity, and say what they alone may do."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import Example, Finding, Rule, is_ours, is_python, tree_of

EMPTY_WORDS = {"util", "utils", "helper", "helpers", "service", "services", "manager", "managers", "common", "misc"}
# Words that the glossary replaces: a class or module named so would be a synonym.
SYNONYMS = {
    "Annotation": "Judgment",
    "Label": "Judgment",
    "Question": "Problem",
    "Prompt": "Problem",
    "Solution": "Trace",
    "Sample": "Trace",
    "Completion": "Option",
    "Campaign": "Project",
    "Worker": "Rater",
    "Annotator": "Rater",
    "Honeypot": "Gold",
    "Scorer": "PRM",
    "Iteration": "Generation",
    "Task": "Assignment",
    "Lock": "Assignment",
}


def empty(path: str, text: str) -> Iterator[Finding]:
    for part in path.removesuffix(".py").split("/"):
        words = EMPTY_WORDS & set(part.split("_"))
        if words:
            yield Finding(part, 1, f"{part!r} says nothing: name the activity")


def undocumented(path: str, text: str) -> Iterator[Finding]:
    if text.strip() and ast.get_docstring(tree_of(text)) is None:
        yield Finding("module", 1, "no docstring: say what this module alone may do")


def synonym(path: str, text: str) -> Iterator[Finding]:
    for node in tree_of(text).body:
        if isinstance(node, ast.ClassDef) and node.name in SYNONYMS:
            yield Finding(node.name, node.lineno, f"the glossary's word is {SYNONYMS[node.name]}")


RULES = (
    Rule(
        name="modules are named for what they do",
        looks_at=is_python,
        find=empty,
        good=(Example("labeling/queue.py", ""),),
        bad=(Example("labeling/utils.py", ""), Example("labeling/queue_helpers.py", ""), Example("a/common/b.py", "")),
    ),
    Rule(
        name="modules say what they alone may do",
        looks_at=lambda path: is_python(path) and not path.endswith("/apps.py"),
        find=undocumented,
        good=(Example("labeling/queue.py", '"""Hands out traces."""\n'), Example("labeling/__init__.py", "")),
        bad=(Example("labeling/queue.py", "x = 1\n"),),
    ),
    Rule(
        name="classes use the glossary's words",
        looks_at=is_ours,
        find=synonym,
        good=(Example("labeling/models/trace.py", "class Trace: pass\n"),),
        bad=(Example("labeling/models/trace.py", "class Solution: pass\n"),),
    ),
)
