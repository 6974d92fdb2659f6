"""Create and clone projects together with their owner."""

import datetime as dt
from typing import Any

from django.db import transaction

from accounts.models import User
from labeling.models import Project
from labeling.projects import lifecycle
from people import members
from people.models import Role


def create_owned_project(*, name: str, slug: str, by: User, now: dt.datetime, **settings: Any) -> Project:
    """Create a project and make its creator the owner."""
    with transaction.atomic():
        project = lifecycle.create_project(name=name, slug=slug, by=by, now=now, **settings)
        members.add_member(project=project, user=by, role=Role.OWNER, now=now)
    return project


def clone_owned_project(*, project: Project, name: str, slug: str, by: User, now: dt.datetime) -> Project:
    """Clone a project and make the acting user its owner."""
    with transaction.atomic():
        clone = lifecycle.clone_project(project=project, name=name, slug=slug, by=by, now=now)
        members.add_member(project=clone, user=by, role=Role.OWNER, now=now)
    return clone
