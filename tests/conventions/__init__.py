"""Project rules that a program can check.

Each rule has good and bad examples; `tests/test_conventions.py` applies it to the whole tree and to them.
"""

from tests.conventions import forbidden_words, imports, models, names, sizes, templates, testing, verbs, views
from tests.conventions.rule import ConventionRule

RULES: tuple[ConventionRule, ...] = (
    *views.RULES,
    *verbs.RULES,
    *models.RULES,
    *imports.RULES,
    *templates.RULES,
    *sizes.RULES,
    *names.RULES,
    *testing.RULES,
    *forbidden_words.RULES,
)
