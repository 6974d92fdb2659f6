"""Disclosures of a lead about a project, for its dataset cards. Only this module writes `ProjectDisclosure`."""

import datetime as dt

from accounts.models import User
from events import audit_log
from exports.models import ProjectDisclosure
from labeling.models import Project

NOT_STATED = "not stated"
# Every card prints these fields, stated or not.
DISCLOSURE_LABELS = {
    "process_supervised": "Supervised process",
    "base_model": "Base model",
    "policy": "Policy that generated the traces",
    "orm": "Outcome reward model (ORM)",
    "prm": "Process reward model (PRM)",
    "judge": "Judge",
    "human_source": "Human data source",
    "scaffold": "Tool scaffold",
    "deployment_monitor": "Deployment monitor",
    "where_tested": "Tested on",
    "known_failures": "Known failures",
}
CARD_FIELDS = tuple(DISCLOSURE_LABELS)
FIELDS = (*CARD_FIELDS, "raters", "pay", "domains_not_covered", "licence")


def load_disclosure(project: Project) -> dict[str, str]:
    """Return the current text of every field, empty if not stated."""
    row = ProjectDisclosure.objects.filter(project=project).first()
    return {name: getattr(row, name) if row else "" for name in FIELDS}


def save_disclosure(*, project: Project, texts: dict[str, str], by: User | None, now: dt.datetime) -> None:
    """Save the given fields. Later snapshots print them; existing snapshots keep the texts they were made with."""
    fields = {name: texts[name].strip() for name in FIELDS if name in texts}
    ProjectDisclosure.objects.update_or_create(project=project, defaults={**fields, "stated_at": now, "stated_by": by})
    audit_log.log_event(what="statement.made", by=by, now=now, project=project.pk, subject=f"project:{project.pk}")
