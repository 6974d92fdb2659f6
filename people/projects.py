"""A project with its first owner."""

import datetime as dt
from typing import Any

from django.db import transaction

from accounts.models import User
from labeling import projects
from labeling.models import Project
from people import members
from people.models import Role


def create(*, name: str, slug: str, by: User, now: dt.datetime, **settings: Any) -> Project:
    """A project that belongs to whoever made it."""
    with transaction.atomic():
        project = projects.create(name=name, slug=slug, by=by, now=now, **settings)
        members.join(project=project, user=by, role=Role.OWNER, now=now)
    return project


def clone(*, project: Project, name: str, slug: str, by: User, now: dt.datetime) -> Project:
    """Like `projects.clone`, and whoever clones owns it."""
    with transaction.atomic():
        made = projects.clone(project=project, name=name, slug=slug, by=by, now=now)
        members.join(project=made, user=by, role=Role.OWNER, now=now)
    return made
