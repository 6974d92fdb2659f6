"""Modules are nouns of activity, and say what they alone may do."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import ConventionRule, RuleExample, RuleFinding, is_ours, is_python, tree_of

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


def find_empty_words(path: str, text: str) -> Iterator[RuleFinding]:
    for part in path.removesuffix(".py").split("/"):
        words = EMPTY_WORDS & set(part.split("_"))
        if words:
            yield RuleFinding(part, 1, f"{part!r} says nothing: name the activity")


def find_undocumented_modules(path: str, text: str) -> Iterator[RuleFinding]:
    if text.strip() and ast.get_docstring(tree_of(text)) is None:
        yield RuleFinding("module", 1, "no docstring: say what this module alone may do")


def find_synonyms(path: str, text: str) -> Iterator[RuleFinding]:
    for node in tree_of(text).body:
        if isinstance(node, ast.ClassDef) and node.name in SYNONYMS:
            yield RuleFinding(node.name, node.lineno, f"the glossary's word is {SYNONYMS[node.name]}")


RULES = (
    ConventionRule(
        name="modules are named for what they do",
        looks_at=is_python,
        find=find_empty_words,
        good=(RuleExample("labeling/queue.py", ""),),
        bad=(
            RuleExample("labeling/utils.py", ""),
            RuleExample("labeling/queue_helpers.py", ""),
            RuleExample("a/common/b.py", ""),
        ),
    ),
    ConventionRule(
        name="modules say what they alone may do",
        looks_at=lambda path: is_python(path) and not path.endswith("/apps.py"),
        find=find_undocumented_modules,
        good=(RuleExample("labeling/queue.py", '"""Hands out traces."""\n'), RuleExample("labeling/__init__.py", "")),
        bad=(RuleExample("labeling/queue.py", "x = 1\n"),),
    ),
    ConventionRule(
        name="classes use the glossary's words",
        looks_at=is_ours,
        find=find_synonyms,
        good=(RuleExample("labeling/models/trace.py", "class Trace: pass\n"),),
        bad=(RuleExample("labeling/models/trace.py", "class Solution: pass\n"),),
    ),
)
