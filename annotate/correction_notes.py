"""The note of whoever asks for a correction, beside the trace while it is being corrected. Reads alone."""

from django.db.models import QuerySet

from accounts.models import User
from labeling import assignments
from labeling.models import CorrectionRequest


def list_in_project(user: User, slug: str) -> QuerySet[CorrectionRequest]:
    """Of what this person has opened again in a project. One query."""
    opened = {"assignment__project__slug": slug, "assignment__reopened_at__isnull": False}
    return assignments.open_correction_requests(user=user).filter(**opened)


def find_for_assignment(assignment: int, user: User) -> CorrectionRequest | None:
    return assignments.open_correction_requests(user=user).filter(assignment=assignment).first()
