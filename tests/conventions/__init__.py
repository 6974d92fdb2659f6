"""House rules that can be run. Each rule carries a good and a bad example of its own; `tests/test_conventions.py`
holds every rule against the whole tree, and against its examples."""

from tests.conventions import forbidden_words, imports, models, names, sizes, tables, templates, testing, verbs, views
from tests.conventions.rule import ConventionRule

RULES: tuple[ConventionRule, ...] = (
    *views.RULES,
    *verbs.RULES,
    *models.RULES,
    *tables.RULES,
    *imports.RULES,
    *templates.RULES,
    *sizes.RULES,
    *names.RULES,
    *testing.RULES,
    *forbidden_words.RULES,
)
