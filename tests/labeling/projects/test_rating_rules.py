"""The short rules of a project and the codes of its kinds of errors."""

import pytest

from labeling.projects import lifecycle, rating_rules
from labeling.projects.rating_rules import ErrorKind
from tests import factories


def test_kind_that_keeps_its_name_keeps_its_code() -> None:
    known = (ErrorKind("calculation", "Calculation error"), ErrorKind("other", "Other"))
    kinds = rating_rules.name_kinds(["Other", "Wrong tool", "Calculation error", "Wrong tool"], known)
    assert [kind.code for kind in kinds] == ["other", "wrong-tool", "calculation"]


def test_code_of_a_former_kind_is_not_used_again() -> None:
    known = (ErrorKind("wrong-tool", "Wrong tool, or none"),)
    assert rating_rules.name_kinds(["Wrong tool"], known) == (ErrorKind("wrong-tool-2", "Wrong tool"),)
    assert rating_rules.name_kinds(["!!!", "???"], ())[1].code == "kind-2"


def test_codes_fit_into_a_judgment() -> None:
    codes = [kind.code for kind in rating_rules.name_kinds(["x" * 60, "x" * 59, "道具が違う"], ())]
    assert max(map(len, codes)) <= 40
    assert len(set(codes)) == 3


@pytest.mark.parametrize("template", rating_rules.RULES_TEMPLATES)
def test_templates_fit_the_form(template: str) -> None:
    rules = rating_rules.RULES_TEMPLATES[template].rules
    assert max(len(str(rule)) for rule in rules[:3]) <= rating_rules.MAX_RULE_LENGTH
    assert len({kind.code for kind in rules.kinds}) == len(rules.kinds) <= rating_rules.MAX_KINDS
    assert all(len(kind.code) <= 40 for kind in rules.kinds)


@pytest.mark.django_db
def test_clone_has_the_rules_and_former_kinds_keep_their_names() -> None:
    project = factories.make_project(rating_rules=rating_rules.copy_template("agents"))
    clone = lifecycle.clone_project(project=project, name="B", slug="b", by=None, now=factories.NOW)
    assert rating_rules.load_rating_rules(clone) == rating_rules.load_rating_rules(project)
    assert rating_rules.kind_names(clone)["calculation"]  # of the template for math
    assert rating_rules.load_rating_rules(factories.make_project()).kinds[0].code == "reasoning"
