"""Guidelines to begin with, and their rendering. A lead takes one over and makes it their own: the text is copied into
the project, and what comes with the program afterwards changes no project."""

from pathlib import Path
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from labeling.models.project import Protocol

_FOLDER = Path(__file__).parent


class GuidelineTemplate(NamedTuple):
    """A guideline that comes with the program."""

    name: str | Promise
    what: str | Promise  # for which traces it is made
    protocol: Protocol  # the one that its text explains


TEMPLATES = {
    "maths": GuidelineTemplate(
        _("Step-by-step maths"),
        _("Solutions of problems that have one answer, up to the first error."),
        Protocol.FIRST_ERROR,
    ),
    "agents": GuidelineTemplate(
        _("Agents that use tools"),
        _("Runs of assistants that call tools: everything that the agent does."),
        Protocol.EVERY_STEP,
    ),
    "policy": GuidelineTemplate(
        _("A written policy"),
        _("Answers that have to keep to the rules of an organisation, up to the first breach."),
        Protocol.FIRST_ERROR,
    ),
}


class GuidelineTemplateUnknown(Exception):
    """No guideline of this name comes with the program."""


def load_guideline_template(template: str) -> str:
    """The Markdown of a template, as a lead finds it before changing it."""
    if template not in TEMPLATES:
        raise GuidelineTemplateUnknown(
            f"There is no guideline template {template!r}. There are: {', '.join(TEMPLATES)}."
        )
    return (_FOLDER / f"{template}.md").read_text(encoding="utf-8")


def load_consent_template() -> str:
    """A text to agree to, with places for the project to fill in."""
    return (_FOLDER / "consent.md").read_text(encoding="utf-8")
