"""Views translate; verbs write."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import (
    ROOMS,
    Example,
    Finding,
    Rule,
    below,
    dotted,
    functions,
    room_of,
    tree_of,
    written_calls,
)

SURFACES = {"annotate", "dashboard", "api", "accounts", "people"}


def is_view(path: str) -> bool:
    parts = path.split("/")
    return room_of(path) in SURFACES and path.endswith(".py") and (parts[-1] == "views.py" or "views" in parts[1:-1])


def is_urls(path: str) -> bool:
    return path.endswith("urls.py") and room_of(path) in SURFACES


def writing(path: str, text: str) -> Iterator[Finding]:
    tree = tree_of(text)
    modules = set(_modules(tree))
    for function in functions(tree):
        for call, spelled in written_calls(function):
            if spelled.count(".") == 1 and spelled.split(".")[0] in modules:
                continue  # `projects.create(...)` is a verb
            yield Finding(function.name, call.lineno, f"`{spelled}` writes: call a verb instead")
    for node in below(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "django.db":
            yield Finding("import", node.lineno, "a view needs no connection and no transaction of its own")


def _modules(tree: ast.Module) -> Iterator[str]:
    """Names under which modules of ours are imported: `from people import projects`."""
    for node in below(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ROOMS:
            yield from ((alias.asname or alias.name) for alias in node.names if alias.name.islower())


def unnamed(path: str, text: str) -> Iterator[Finding]:
    for node in below(tree_of(text)):
        if not isinstance(node, ast.Call) or dotted(node.func).rpartition(".")[2] not in {"path", "re_path"}:
            continue
        includes = len(node.args) > 1 and dotted(node.args[1]).endswith(("include", "urls"))
        if not includes and not any(keyword.arg == "name" for keyword in node.keywords) and len(node.args) < 4:
            route = ast.unparse(node.args[0]) if node.args else "?"
            yield Finding(route, node.lineno, f"the URL {route} has no name")


RULES = (
    Rule(
        name="views never write",
        looks_at=is_view,
        find=writing,
        good=(
            Example("annotate/views.py", "def skip(request):\n    queue.release(assignment=a, now=now)\n"),
            Example(
                "dashboard/views.py", "from people import projects\ndef new(request):\n    projects.create(by=1)\n"
            ),
        ),
        bad=(
            Example("annotate/views.py", "def skip(request):\n    a.state = 'released'\n    a.save()\n"),
            Example("dashboard/views/people.py", "def pause(request):\n    Rater.objects.filter(pk=1).update(x=1)\n"),
            Example("annotate/views.py", "from django.db import transaction\n"),
        ),
    ),
    Rule(
        name="every URL has a name",
        looks_at=is_urls,
        find=unnamed,
        good=(Example("annotate/urls.py", "urlpatterns = [path('', views.home, name='home')]\n"),),
        bad=(Example("annotate/urls.py", "urlpatterns = [path('', views.home)]\n"),),
    ),
)
