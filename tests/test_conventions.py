"""Every rule holds for the whole tree, and every rule can tell its good examples from its bad ones."""

from collections import defaultdict
from collections.abc import Iterable

import pytest

from tests.conventions import RULES, exceptions
from tests.conventions import names as naming
from tests.conventions.rule import ConventionRule, RuleExample, RuleFinding, is_ours, list_files, text_of

pytestmark = pytest.mark.static

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def broken(rule: ConventionRule, paths: Iterable[str]) -> dict[str, RuleFinding]:
    """Return the findings of a rule in these files by `path::where`."""
    return {
        f"{path}::{finding.where}": finding
        for path in paths
        if rule.looks_at(path)
        for finding in rule.find(path, text_of(path))
    }


def is_allowed(rule: ConventionRule, key: str) -> bool:
    return any((rule.name, known) in exceptions.ALLOWED for known in (key, key.partition("::")[0]))


@each_rule
def test_rule_holds_in_the_tree(rule: ConventionRule) -> None:
    found = [
        f"{key.partition('::')[0]}:{finding.line}: {finding.what}"
        for key, finding in broken(rule, list_files()).items()
        if not is_allowed(rule, key)
    ]
    assert not found, "\n".join([f"{rule.name}:", *found])


@each_rule
def test_rule_tells_good_from_bad(rule: ConventionRule) -> None:
    assert rule.good
    assert rule.bad

    def finds(example: RuleExample) -> bool:
        return bool(rule.findings(example.path, example.text))

    assert not [example for example in rule.good if finds(example)]
    assert not [example for example in rule.bad if not finds(example)]


def test_every_exception_is_still_needed() -> None:
    excused = {path for _, key in exceptions.ALLOWED if (path := key.partition("::")[0]) in list_files()}
    needed = {(rule.name, key) for rule in RULES for key in broken(rule, excused)}
    needed |= {(name, key.partition("::")[0]) for name, key in needed}
    stale = sorted(set(exceptions.ALLOWED) - needed)
    assert not stale, stale


def test_rule_names_are_unique() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))


def test_public_class_names_are_unique() -> None:
    paths = defaultdict(list)
    for path in list_files():
        if is_ours(path):
            for name in naming.list_public_classes(text_of(path)):
                paths[name].append(path)
    shared = {"Command", "Meta", "Config", "Migration"}  # names that Django expects
    assert not {name: where for name, where in paths.items() if len(where) > 1 and name not in shared}
