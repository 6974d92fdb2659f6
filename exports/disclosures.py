"""What a lead states of a project for its cards. Alone changes Statement."""

import datetime as dt

from accounts.models import User
from events import audit_log
from exports.models import ProjectDisclosure
from labeling.models import Project

# What every card says, stated or not.
CARD_FIELDS = (
    *("process_supervised", "base_model", "policy", "orm", "prm", "judge", "human_source", "scaffold"),
    *("deployment_monitor", "where_tested", "known_failures"),
)
OTHER_FIELDS = ("raters", "pay", "domains_not_covered", "licence")
FIELDS = (*CARD_FIELDS, *OTHER_FIELDS)


def load_disclosure(project: Project) -> dict[str, str]:
    """As it stands now, every field of it."""
    row = ProjectDisclosure.objects.filter(project=project).first()
    return {name: getattr(row, name) if row else "" for name in FIELDS}


def save_disclosure(*, project: Project, said: dict[str, str], by: User | None, now: dt.datetime) -> None:
    """Snapshots that are made from now on carry it; those that were made keep what was stated then."""
    fields = {name: said[name].strip() for name in FIELDS if name in said}
    ProjectDisclosure.objects.update_or_create(project=project, defaults={**fields, "stated_at": now, "stated_by": by})
    audit_log.log_event(what="statement.made", by=by, now=now, project=project.pk, subject=f"project:{project.pk}")
