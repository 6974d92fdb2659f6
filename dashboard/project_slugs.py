"""Checks of the slug of a new project."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from labeling.models import Project


def clean_new_slug(slug: str) -> str:
    """Return the slug in lower case. Raises ValidationError if a project has it."""
    slug = slug.lower()
    if slug == "new" or Project.objects.filter(slug=slug).exists():
        raise build_slug_taken_error(slug)
    return slug


def build_slug_taken_error(slug: str) -> ValidationError:
    message = _("The address “%(slug)s” is taken. Choose another one.")
    return ValidationError(message, code="taken", params={"slug": slug})
