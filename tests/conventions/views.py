"""Views do not write; functions of the domain do."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import (
    PACKAGES,
    ConventionRule,
    RuleExample,
    RuleFinding,
    dotted_name,
    list_functions,
    package_of,
    tree_of,
    walk_nodes,
    writing_calls,
)

SURFACES = {"annotate", "dashboard", "api", "accounts", "people"}


def is_view(path: str) -> bool:
    parts = path.split("/")
    return package_of(path) in SURFACES and path.endswith(".py") and (parts[-1] == "views.py" or "views" in parts[1:-1])


def is_urls(path: str) -> bool:
    return path.endswith("urls.py") and package_of(path) in SURFACES


def find_writes(path: str, text: str) -> Iterator[RuleFinding]:
    tree = tree_of(text)
    modules = set(_modules(tree))
    for function in list_functions(tree):
        for call, spelled in writing_calls(function):
            if spelled.count(".") == 1 and spelled.split(".")[0] in modules:
                continue  # `projects.create(...)` is a verb
            yield RuleFinding(function.name, call.lineno, f"`{spelled}` writes: call a function of the domain instead")
    for node in walk_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "django.db":
            yield RuleFinding("import", node.lineno, "a view needs neither a connection nor a transaction")


def _modules(tree: ast.Module) -> Iterator[str]:
    """Return the names under which our own modules are imported: `from people import projects`."""
    for node in walk_nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            yield from ((alias.asname or alias.name) for alias in node.names if alias.name.islower())


def find_unnamed_urls(path: str, text: str) -> Iterator[RuleFinding]:
    for node in walk_nodes(tree_of(text)):
        if not isinstance(node, ast.Call) or dotted_name(node.func).rpartition(".")[2] not in {"path", "re_path"}:
            continue
        includes = len(node.args) > 1 and dotted_name(node.args[1]).endswith(("include", "urls"))
        if not includes and not any(keyword.arg == "name" for keyword in node.keywords) and len(node.args) < 4:
            route = ast.unparse(node.args[0]) if node.args else "?"
            yield RuleFinding(route, node.lineno, f"the URL {route} has no name")


RULES = (
    ConventionRule(
        name="views do not write",
        looks_at=is_view,
        find=find_writes,
        good=(
            RuleExample("annotate/views.py", "def skip(request):\n    queue.release(assignment=a, now=now)\n"),
            RuleExample(
                "dashboard/views.py", "from people import projects\ndef new(request):\n    projects.create(by=1)\n"
            ),
        ),
        bad=(
            RuleExample("annotate/views.py", "def skip(request):\n    a.state = 'released'\n    a.save()\n"),
            RuleExample(
                "dashboard/members/views.py", "def pause(request):\n    Rater.objects.filter(pk=1).update(x=1)\n"
            ),
            RuleExample("annotate/views.py", "from django.db import transaction\n"),
        ),
    ),
    ConventionRule(
        name="every URL has a name",
        looks_at=is_urls,
        find=find_unnamed_urls,
        good=(RuleExample("annotate/urls.py", "urlpatterns = [path('', views.home, name='home')]\n"),),
        bad=(RuleExample("annotate/urls.py", "urlpatterns = [path('', views.home)]\n"),),
    ),
)
