"""Built-in guideline templates. Publishing one copies its text into the project, so that later versions of the
program do not change any project."""

from pathlib import Path
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from labeling.models.project import Protocol

_FOLDER = Path(__file__).parent


class GuidelineTemplate(NamedTuple):
    name: str | Promise
    what: str | Promise  # the kind of traces it is for
    protocol: Protocol  # the protocol that the text explains


TEMPLATES = {
    "math": GuidelineTemplate(
        _("Step-by-step math"),
        _("Solutions to problems with a single answer, rated up to the first error."),
        Protocol.FIRST_ERROR,
    ),
    "agents": GuidelineTemplate(
        _("Agents with tools"),
        _("Runs by assistants that call tools. Every step is rated."),
        Protocol.CARRY_FORWARD,
    ),
    "policy": GuidelineTemplate(
        _("A written policy"),
        _("Answers that must follow the rules of an organization, rated up to the first violation."),
        Protocol.FIRST_ERROR,
    ),
}


class GuidelineTemplateUnknown(Exception):
    """There is no guideline template of this name."""

    def __init__(self, template: str) -> None:
        super().__init__(f"There is no guideline template {template!r}. Available: {', '.join(TEMPLATES)}.")
        self.template = template


def load_guideline_template(template: str) -> str:
    """Return the Markdown of a template. Raises GuidelineTemplateUnknown."""
    if template not in TEMPLATES:
        raise GuidelineTemplateUnknown(template)
    return (_FOLDER / f"{template}.md").read_text(encoding="utf-8")


def load_consent_template() -> str:
    """Return a consent text with placeholders for the project to fill in."""
    return (_FOLDER / "consent.md").read_text(encoding="utf-8")
