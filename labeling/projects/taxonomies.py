"""What a project asks raters besides ratings: kinds of errors, names of severities, questions on the whole trace.

Each version of the guideline stores the taxonomy that was in force when it was published. A change of the taxonomy
publishes the next version, so that every assignment records under which taxonomy it was made.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from labeling.models import Project
from labeling.projects import clauses, rating_rules, trace_questions
from labeling.projects.clauses import Clause
from labeling.projects.rating_rules import ErrorKind
from labeling.projects.trace_questions import TraceQuestion

# The settings of a project that belong to its taxonomy.
TAXONOMY_SETTINGS = frozenset(
    {"rating_rules", "trace_questions", "asks_error_category", "asks_severity", "asks_clauses"}
)


class Taxonomy(NamedTuple):
    kinds: tuple[ErrorKind, ...] = ()
    severities: tuple[str, ...] = ()  # from the lowest to the highest
    questions: tuple[TraceQuestion, ...] = ()
    clauses: tuple[Clause, ...] = ()  # of the guideline, if ratings cite them


def load_taxonomy(project: Project, body: str | None = None) -> Taxonomy:
    """Return what the project asks now, or would with this text of the guideline. What it does not ask is empty."""
    rules = rating_rules.load_rating_rules(project)
    if body is None and project.asks_clauses:  # else the guideline is not needed
        body = project.guideline.body if project.guideline else ""
    return Taxonomy(
        kinds=rules.kinds if project.asks_error_category else (),
        severities=tuple(rating_rules.name_severities(project).values()) if project.asks_severity else (),
        questions=trace_questions.load_trace_questions(project),
        clauses=clauses.parse_clauses(body or "") if project.asks_clauses else (),
    )


def store_taxonomy(taxonomy: Taxonomy) -> dict[str, Any]:
    """Return a taxonomy as `Guideline.taxonomy` has it."""
    stored = {
        "kinds": [rating_rules.store_kind(kind) for kind in taxonomy.kinds],
        "severities": list(taxonomy.severities),
        "questions": trace_questions.store_questions(taxonomy.questions),
        "clauses": [list(clause) for clause in taxonomy.clauses],
    }
    return {name: values for name, values in stored.items() if values}


def parse_taxonomy(stored: Mapping[str, Any]) -> Taxonomy:
    return Taxonomy(
        kinds=tuple(ErrorKind(*kind) for kind in stored.get("kinds", ())),
        severities=tuple(stored.get("severities", ())),
        questions=trace_questions.parse_questions(stored.get("questions", ())),
        clauses=tuple(Clause(*clause) for clause in stored.get("clauses", ())),
    )


def describe_changes(before: Taxonomy, after: Taxonomy) -> str:
    """Return what differs, in sentences for raters."""
    old, new = _name_parts(before), _name_parts(after)
    texts = {
        "kinds": (_("New kinds of errors: %s."), _("Removed kinds of errors: %s."), _("Changed kinds of errors: %s.")),
        "questions": (_("New questions: %s."), _("Removed questions: %s."), _("Changed questions: %s.")),
    }
    sentences = []
    for part, (added, removed, changed) in texts.items():
        names = {code: name for code, (name, _content) in {**old[part], **new[part]}.items()}
        both = old[part].keys() & new[part].keys()
        differ = {code for code in both if old[part][code] != new[part][code]}
        sentences += [
            _fill_in(added, (names[code] for code in new[part] if code not in both)),
            _fill_in(removed, (names[code] for code in old[part] if code not in both)),
            _fill_in(changed, (names[code] for code in new[part] if code in differ)),
        ]
    if bool(before.clauses) != bool(after.clauses):
        sentences.append(_("Ratings now cite clauses.") if after.clauses else _("Ratings no longer cite clauses."))
    if after.severities and before.severities != after.severities:
        sentences.append(_fill_in(_("Severities: %s."), after.severities))
    return " ".join(filter(None, sentences))


def _name_parts(taxonomy: Taxonomy) -> dict[str, dict[str, tuple[str, object]]]:
    """Map the codes of kinds and questions to their names and their content."""
    return {
        "kinds": {kind.code: (str(kind.name), str(kind.help)) for kind in taxonomy.kinds},
        "questions": {
            question.code: (str(question.title), stored)
            for question, stored in zip(
                taxonomy.questions, trace_questions.store_questions(taxonomy.questions), strict=True
            )
        },
    }


def _fill_in(sentence: str, names: Iterable[str]) -> str:
    joined = ", ".join(names)
    return sentence % joined if joined else ""
