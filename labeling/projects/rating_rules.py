"""The short rules and kinds of errors of a project, which the work page shows beside each trace.

A project stores its own copy, so that later versions of the program do not change any project. Its first import
chooses the template by the kind of the traces, unless a lead has chosen one. Until then, the rules for math apply."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.text import slugify
from django.utils.translation import gettext_lazy, pgettext_lazy

from labeling.models import Project
from labeling.models.assignment import Severity

MAX_RULE_LENGTH = 200
MAX_KINDS = 12
MAX_KIND_LENGTH = 60
MAX_HELP_LENGTH = 200
_MAX_CODE_LENGTH = 40  # `Judgment.category` has room for twelve


class ErrorKind(NamedTuple):
    code: str  # stored with the rating
    name: str | Promise
    help: str | Promise = ""


class RatingRules(NamedTuple):
    """One sentence for each rating, the kinds of errors that raters choose from, and the names of severities."""

    negative: str | Promise
    neutral: str | Promise
    positive: str | Promise
    kinds: tuple[ErrorKind, ...]
    severities: tuple[str, ...] = ()  # names, from the lowest to the highest; empty for the usual ones


class RulesTemplate(NamedTuple):
    name: str | Promise
    rules: RatingRules


DEFAULT_TEMPLATE = "math"
RULES_TEMPLATES = {
    "math": RulesTemplate(
        pgettext_lazy("traces", "Math"),
        RatingRules(
            gettext_lazy("Wrong, impossible to check, circular or off topic."),
            gettext_lazy("Correct, but makes no progress: repeats earlier work or only announces a plan."),
            gettext_lazy("Correct, checkable in about 30 seconds, and makes progress."),
            (
                ErrorKind("reasoning", gettext_lazy("Wrong reasoning")),
                ErrorKind("calculation", gettext_lazy("Calculation error")),
                ErrorKind("misread", gettext_lazy("Misread the problem")),
                ErrorKind("unsupported", gettext_lazy("Unsupported claim")),
                ErrorKind("other", gettext_lazy("Other")),
            ),
        ),
    ),
    "code": RulesTemplate(
        pgettext_lazy("traces", "Code"),
        RatingRules(
            gettext_lazy("Wrong, breaks something that worked, or makes a claim without running or reading the code."),
            gettext_lazy("Correct, but makes no progress: repeats, reformats or only announces a change."),
            gettext_lazy("Correct for the task and the code at this point, and makes progress."),
            (
                ErrorKind("logic", gettext_lazy("Wrong logic")),
                ErrorKind("edge-case", gettext_lazy("Missed case")),
                ErrorKind("misread", gettext_lazy("Misread the task or the code")),
                ErrorKind("api", gettext_lazy("Wrong function or interface")),
                ErrorKind("made-up", gettext_lazy("Unverified claim")),
                ErrorKind("harm", gettext_lazy("Breaks or deletes something")),
                ErrorKind("other", gettext_lazy("Other")),
            ),
        ),
    ),
    "agents": RulesTemplate(
        pgettext_lazy("traces", "Agents with tools"),
        RatingRules(
            gettext_lazy("Wrong, breaks a rule, has no basis, or does harm."),
            gettext_lazy("Harmless but useless: repeats, states the obvious, or asks for something already known."),
            gettext_lazy("Right given what the agent could know, follows the rules, and makes progress."),
            (
                ErrorKind("tool", gettext_lazy("Wrong tool")),
                ErrorKind("argument", gettext_lazy("Wrong argument")),
                ErrorKind("misread", gettext_lazy("Misread a result or the task")),
                ErrorKind("rule", gettext_lazy("Rule violation")),
                ErrorKind("made-up", gettext_lazy("Made-up result or claim")),
                ErrorKind("harm", gettext_lazy("Harmful or irreversible")),
                ErrorKind("other", gettext_lazy("Other")),
            ),
        ),
    ),
    "policy": RulesTemplate(
        pgettext_lazy("traces", "A written policy"),
        RatingRules(
            gettext_lazy("Violates a rule, promises too much, or leaves out what a rule requires here."),
            gettext_lazy("Violates no rule, but makes no progress: a greeting, repetition or announcement."),
            gettext_lazy("Follows every rule that applies, is supported by the request, and makes progress."),
            (
                ErrorKind("violation", gettext_lazy("Rule violated")),
                ErrorKind("omission", gettext_lazy("Required step missing")),
                ErrorKind("promise", gettext_lazy("Unauthorized promise")),
                ErrorKind("figure", gettext_lazy("Wrong date, limit or amount")),
                ErrorKind("unsupported", gettext_lazy("Not supported by the request")),
                ErrorKind("other", gettext_lazy("Other")),
            ),
        ),
    ),
}


def load_rating_rules(project: Project) -> RatingRules:
    """Return the rules of a project."""
    stored = project.rating_rules
    if not stored:
        return RULES_TEMPLATES[DEFAULT_TEMPLATE].rules
    kinds = tuple(ErrorKind(*kind) for kind in stored["kinds"])
    severities = tuple(stored.get("severities", ()))
    return RatingRules(stored["negative"], stored["neutral"], stored["positive"], kinds, severities)


def copy_template(template: str) -> dict[str, Any]:
    """Return the rules of a template as a project stores them."""
    return store_rules(RULES_TEMPLATES[template].rules)


def store_rules(rules: RatingRules) -> dict[str, Any]:
    """Return rules as `Project.rating_rules` has them."""
    stored: dict[str, Any] = {
        "negative": str(rules.negative),
        "neutral": str(rules.neutral),
        "positive": str(rules.positive),
        "kinds": [store_kind(kind) for kind in rules.kinds],
    }
    return {**stored, "severities": list(rules.severities)} if rules.severities else stored


def store_kind(kind: ErrorKind) -> list[str]:
    """Return the code and the name of a kind, and its hint if it has one."""
    return [kind.code, str(kind.name), *([str(kind.help)] if kind.help else [])]


def name_severities(project: Project) -> dict[int, str]:
    """Return the name of each severity."""
    names = load_rating_rules(project).severities or [severity.label for severity in Severity]
    return dict(zip(Severity.values, map(str, names), strict=True))


def name_kinds(
    names: Iterable[str], known: Iterable[ErrorKind], hints: Mapping[str, str] | None = None
) -> tuple[ErrorKind, ...]:
    """Return kinds of errors with these names and hints. A kind that keeps its name keeps its code; a new one gets a
    code that no other kind has had."""
    codes = {str(kind.name): kind.code for kind in known}
    kinds: dict[str, ErrorKind] = {}
    for name in names:
        if name in (str(kind.name) for kind in kinds.values()):
            continue
        code = codes.get(name) or _make_code(name, {*codes.values(), *kinds})
        kinds[code] = ErrorKind(code, name, (hints or {}).get(name, ""))
    return tuple(kinds.values())


def _make_code(name: str, taken: set[str]) -> str:
    code = slugify(name, allow_unicode=True)[:_MAX_CODE_LENGTH] or "kind"
    number = 2
    while code in taken:
        code = f"{code[: _MAX_CODE_LENGTH - 4].rstrip('-')}-{number}"
        number += 1
    return code


def kind_names(project: Project) -> Mapping[str, str]:
    """Return the name of each kind by its code. Templates have names for codes that the project no longer uses."""
    names = {kind.code: str(kind.name) for each in RULES_TEMPLATES.values() for kind in each.rules.kinds}
    return {**names, **{kind.code: str(kind.name) for kind in load_rating_rules(project).kinds}}


def name_category(category: str, names: Mapping[str, str]) -> str:
    """Return the names of the kinds that a rater chose."""
    return ", ".join(names.get(code, code) for code in category.split(" ") if code)
