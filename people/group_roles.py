"""Set people's roles from their single sign-on groups at each login.

For a project that the setting names, the groups decide: a person without a group of the project leaves it."""

from django.db import transaction
from django.utils import timezone

from accounts import single_sign_on, users
from accounts.models import User
from labeling.models import Project
from people import members
from people.models import Role
from people.roles import ROLE_ACTIONS

OWNER = "owner"  # may create projects


def synchronize_roles(user: User | None, groups: frozenset[str]) -> bool:
    """Set the roles of a user. Return whether the groups have any role; without a user, only that."""
    mapping = single_sign_on.get_settings().group_roles
    held = {value for group in groups for value in mapping.get(group, ())}
    if user is None:
        slugs = {value.rpartition(":")[0] for value in held}
        return OWNER in held or Project.objects.filter(slug__in=slugs).exists()
    named = {value for values in mapping.values() for value in values}
    now = timezone.now()
    with transaction.atomic():
        if OWNER in named:
            users.set_operator(user=user, is_operator=OWNER in held, now=now)
        slugs = {value.rpartition(":")[0] for value in named if value != OWNER}
        for project in Project.objects.filter(slug__in=slugs).order_by("pk"):
            roles = [Role(value.rpartition(":")[2]) for value in held if value.rpartition(":")[0] == project.slug]
            highest = max(roles, key=lambda role: len(ROLE_ACTIONS[role]), default=None)
            members.set_role_of_groups(project=project, user=user, role=highest, now=now)
    return bool(held)
