"""Models hold fields, constraints and small methods about one row."""

import ast
import re
from collections.abc import Iterator

from tests.conventions.rule import (
    ConventionRule,
    RuleExample,
    RuleFinding,
    is_ours,
    is_python,
    last_name,
    tree_of,
    walk_nodes,
)

QUERIES = {"filter", "all", "count", "exists", "first", "last", "aggregate", "get", "values_list", "objects"}
# "flagged" is a field of PRM800K.
QUESTIONS = re.compile(
    r"^(is|has|had|was|may|can|does|holds|saw|shows|asks|reveals|wants|allows|needs|uses|keeps|hides|takes|includes)_|(\w+_)?flagged$"
)


def list_models(tree: ast.AST) -> Iterator[ast.ClassDef]:
    return (node for node in walk_nodes(tree) if isinstance(node, ast.ClassDef))


def is_model(node: ast.ClassDef) -> bool:
    return any(last_name(base) in {"Model", "AbstractBaseUser"} for base in node.bases)


def find_overrides(path: str, text: str) -> Iterator[RuleFinding]:
    for model in filter(is_model, list_models(tree_of(text))):
        for node in model.body:
            if isinstance(node, ast.FunctionDef) and node.name in {"save", "delete", "full_clean"}:
                yield RuleFinding(model.name, node.lineno, f"{model.name}.{node.name}() hides a write: use a function")


def find_queries(path: str, text: str) -> Iterator[RuleFinding]:
    for model in filter(is_model, list_models(tree_of(text))):
        for node in model.body:
            if isinstance(node, ast.FunctionDef) and "property" in {last_name(each) for each in node.decorator_list}:
                asked = {each.attr for each in walk_nodes(node) if isinstance(each, ast.Attribute)} & QUERIES
                if asked:
                    yield RuleFinding(
                        f"{model.name}.{node.name}", node.lineno, f"a property that queries ({min(asked)})"
                    )


def find_orderings(path: str, text: str) -> Iterator[RuleFinding]:
    for model in filter(is_model, list_models(tree_of(text))):
        for meta in (node for node in model.body if isinstance(node, ast.ClassDef) and node.name == "Meta"):
            if "ordering" in {target for each in meta.body for target in assigned_name(each)}:
                yield RuleFinding(model.name, meta.lineno, "Meta.ordering sorts every query: order where it is needed")


def assigned_name(node: ast.AST) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return (target.id for target in targets if isinstance(target, ast.Name))


def find_signals(path: str, text: str) -> Iterator[RuleFinding]:
    for node in walk_nodes(tree_of(text)):
        if isinstance(node, ast.ImportFrom) and (
            ((node.module or "").startswith("django") and (node.module or "").endswith("signals"))
            or (node.module or "").startswith("django.dispatch")
            or ((node.module or "").startswith("django") and "signals" in {alias.name for alias in node.names})
        ):
            yield RuleFinding("import", node.lineno, "signals hide control flow: call a function")


def find_unreadable_constraints(path: str, text: str) -> Iterator[RuleFinding]:
    """Find constraint names that do not read as a sentence."""
    for node in walk_nodes(tree_of(text)):
        if isinstance(node, ast.Call) and last_name(node.func).endswith("Constraint"):
            name = next((keyword.value for keyword in node.keywords if keyword.arg == "name"), None)
            spelled = _spelled(name)
            if spelled.count("_") < 2:
                yield RuleFinding(spelled, node.lineno, f"the constraint {spelled!r} does not state its rule")


def _spelled(name: ast.expr | None) -> str:
    if isinstance(name, ast.Constant):
        return str(name.value)
    if isinstance(name, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in name.values)
    return ""


def find_misnamed_fields(path: str, text: str) -> Iterator[RuleFinding]:
    for model in filter(is_model, list_models(tree_of(text))):
        for node in model.body:
            kind = last_name(node.value.func) if _is_field(node) else ""  # type: ignore[attr-defined]  # checked there
            for name in assigned_name(node):
                if kind == "DateTimeField" and not name.endswith("_at"):
                    yield RuleFinding(f"{model.name}.{name}", node.lineno, f"a time ends in _at: {name}")
                if kind == "BooleanField" and not QUESTIONS.match(name):
                    yield RuleFinding(f"{model.name}.{name}", node.lineno, f"a boolean reads as a question: {name}")


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)


def example_model(body: str) -> RuleExample:
    return RuleExample("labeling/models/x.py", f"class X(models.Model):\n{body}")


RULES = (
    ConventionRule(
        name="models do not override save",
        looks_at=is_ours,
        find=find_overrides,
        good=(example_model("    def __str__(self): return 'x'\n"),),
        bad=(example_model("    def save(self, **k): pass\n"),),
    ),
    ConventionRule(
        name="properties do not query",
        looks_at=is_ours,
        find=find_queries,
        good=(example_model("    @property\n    def is_open(self): return self.state in OPEN\n"),),
        bad=(example_model("    @property\n    def n(self): return self.steps.count()\n"),),
    ),
    ConventionRule(
        name="models have no ordering",
        looks_at=is_ours,
        find=find_orderings,
        good=(example_model("    class Meta:\n        constraints = []\n"),),
        bad=(
            example_model("    class Meta:\n        ordering = ['id']\n"),
            example_model("    class Meta:\n        ordering: L = ['id']\n"),
        ),
    ),
    ConventionRule(
        name="no signals",
        looks_at=is_ours,
        find=find_signals,
        good=(RuleExample("events/audit_log.py", "from events.models import Event\n"),),
        bad=(
            RuleExample("labeling/apps.py", "from django.db.models.signals import post_save\n"),
            RuleExample("labeling/apps.py", "from django.dispatch import receiver\n"),
            RuleExample("labeling/apps.py", "from django.core import signals\n"),
        ),
    ),
    ConventionRule(
        name="constraint names read as a rule",
        looks_at=is_ours,
        find=find_unreadable_constraints,
        good=(example_model("    c = models.CheckConstraint(condition=q, name='slots_are_never_negative')\n"),),
        bad=(
            example_model("    c = models.CheckConstraint(condition=q, name='slots_ck')\n"),
            example_model("    c = models.UniqueConstraint(fields=['a'])\n"),
        ),
    ),
    ConventionRule(
        name="times end in _at and booleans read as questions",
        looks_at=lambda path: is_python(path) and ("models" in path.removesuffix(".py").split("/")),
        find=find_misnamed_fields,
        good=(example_model("    made_at = models.DateTimeField()\n    is_open = models.BooleanField()\n"),),
        bad=(example_model("    made = models.DateTimeField()\n"), example_model("    open = models.BooleanField()\n")),
    ),
)
