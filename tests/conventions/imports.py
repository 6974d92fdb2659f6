"""Which package may import which third-party package. import-linter checks imports between our own packages."""

import ast
from collections.abc import Iterator

from tests.conventions.rule import ConventionRule, RuleExample, RuleFinding, is_python, tree_of, walk_nodes

# Package, who may import it (by the beginning of the path), why.
ALLOWED = (
    ("rest_framework", ("api/",), "only api uses the REST framework"),
    ("drf_spectacular", ("api/",), "only api uses the REST framework"),
    ("sklearn", ("prm/backends/builtin",), "only the built-in PRM uses scikit-learn"),
    ("krippendorff", ("tests/", "bench/"), "GPL: only an oracle in tests"),
    ("scipy", ("tests/", "bench/", "prm/backends/builtin", "stats/intervals"), "20 MB that web processes never load"),
    ("pandas", (), "numpy is enough"),
    (
        "celery",
        (
            "config/",
            "accounts/tasks",
            "events/tasks",
            "jobs/",
            "supervisor/",
            "labeling/tasks",
            "people/tasks",
            "exports/tasks",
            "notices/tasks",
            "prm/tasks",
            "machines/tasks",
        ),
        "only tasks and the application use Celery; other code starts jobs through `jobs`",
    ),
)
# The domain has no HTTP.
WEB = ("django.http", "django.shortcuts", "django.template", "django.urls", "django.views", "django.middleware")
DOMAIN_WITHOUT_WEB = ("labeling/", "jobs/", "events/", "formats/", "stats/", "prm/selection/", "prm/evaluation/")


def imported_packages(text: str) -> Iterator[tuple[str, int]]:
    for node in walk_nodes(tree_of(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def find_foreign_imports(path: str, text: str) -> Iterator[RuleFinding]:
    for name, line in imported_packages(text):
        for package, users, why in ALLOWED:
            if f"{name}.".startswith(f"{package}.") and not path.startswith((*users, "tests/")):
                yield RuleFinding(package, line, f"{name}: {why}")
        if path.startswith(DOMAIN_WITHOUT_WEB) and f"{name}.".startswith(tuple(f"{each}." for each in WEB)):
            yield RuleFinding(name, line, f"{name}: this package must not use HTTP or templates")


RULES = (
    ConventionRule(
        name="third-party packages stay in their package",
        looks_at=is_python,
        find=find_foreign_imports,
        good=(
            RuleExample("api/views.py", "from rest_framework import views\n"),
            RuleExample("prm/backends/builtin/fit.py", "import sklearn.linear_model\n"),
        ),
        bad=(
            RuleExample("dashboard/views.py", "from rest_framework import views\n"),
            RuleExample("prm/scoring.py", "import sklearn\n"),
            RuleExample("stats/agreement.py", "import krippendorff\n"),
            RuleExample("labeling/queue.py", "from django.shortcuts import get_object_or_404\n"),
            RuleExample("labeling/judging.py", "from django import http\n"),
        ),
    ),
)
