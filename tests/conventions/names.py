"""Names that a reader can guess and find with grep."""

import ast
import re
from collections.abc import Iterator

from tests.conventions.rule import ConventionRule, RuleExample, RuleFinding, is_ours, is_python, tree_of

EMPTY_WORDS = {"util", "utils", "helper", "helpers", "service", "services", "manager", "managers", "common", "misc"}
# A function needs a verb with its object: these names contain neither.
PARTICLES = frozenset(
    ("of", "told", "tell", "say", "said", "asked", "ask", "look", "look_at", "known", "shown", "seen")
) | {
    *("found", "made", "kept", "held", "since", "are", "was"),
}
# Words in -ing and -ed that the field uses as nouns.
NOUNS = frozenset(
    ("scoring", "settings", "onboarding", "sampling", "training", "screening", "logging", "paging", "rendering")
)
GERUND = re.compile(r"[a-z]+(ing|ed)|told|said|kept|held|seen|shown")


def find_empty_words(path: str, text: str) -> Iterator[RuleFinding]:
    for part in path.removesuffix(".py").split("/"):
        if EMPTY_WORDS & set(part.split("_")):
            yield RuleFinding(part, 1, f"{part!r} does not say what is in it: use a noun")


def find_bare_gerunds(path: str, text: str) -> Iterator[RuleFinding]:
    stem = path.removesuffix(".py").rpartition("/")[2]
    if GERUND.fullmatch(stem) and stem not in NOUNS:
        yield RuleFinding(stem, 1, f"{stem!r} is a bare gerund or participle: use a noun, or a verb with its object")


def find_particle_functions(path: str, text: str) -> Iterator[RuleFinding]:
    for node in tree_of(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in PARTICLES:
            yield RuleFinding(
                node.name, node.lineno, f"`{node.name}` cannot be found by grep: use a verb and its object"
            )


def list_public_classes(text: str) -> list[str]:
    return [node.name for node in tree_of(text).body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]


RULES = (
    ConventionRule(
        name="modules are named for what is in them",
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
        name="modules are not named by a bare gerund",
        looks_at=is_ours,
        find=find_bare_gerunds,
        good=(RuleExample("labeling/queue/leases.py", ""), RuleExample("prm/scoring.py", "")),
        bad=(RuleExample("labeling/telling.py", ""), RuleExample("dashboard/told.py", "")),
    ),
    ConventionRule(
        name="public functions are verbs with an object",
        looks_at=is_ours,
        find=find_particle_functions,
        good=(RuleExample("labeling/gold.py", "def load_gold(): pass\n"),),
        bad=(RuleExample("labeling/gold.py", "def of(): pass\n"),),
    ),
)
