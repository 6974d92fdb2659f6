"""Why the work on an assignment was refused. Messages are for the rater."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from labeling.projects import protocols
from labeling.projects.protocols import SubmitState

if TYPE_CHECKING:
    from labeling.assignments.merge import LostEdit


class AssignmentError(Exception):
    """Base class. The message can be shown to people."""


class AssignmentUnknown(AssignmentError):
    """This rater has no such assignment."""

    def __init__(self) -> None:
        super().__init__(_("This trace is not assigned to you. Open your next trace from Home."))


class BatchRefused(AssignmentError):
    """The batch is invalid. Nothing was recorded."""


class EditRefused(AssignmentError):
    """One edit of a batch is invalid. Nothing of the batch was recorded."""

    def __init__(self, message: str, *, index: int, sequence: int, field: str) -> None:
        super().__init__(message)
        self.index, self.sequence, self.field = index, sequence, field


class SubmissionIncomplete(AssignmentError):
    """Ratings are missing. The edits that came with the submit are recorded."""

    def __init__(self, state: SubmitState) -> None:
        super().__init__(_("Not submitted yet. %(missing)s.") % {"missing": protocols.submit_text(state)})
        self.state = state


class ConflictingEdits(AssignmentError):
    """Another client's ratings won over those that came with the submit. The rater must see them first."""

    def __init__(self, lost: Sequence["LostEdit"], *, numbers: Mapping[int, int]) -> None:
        rated = {each.target.step for each in lost if not each.target.question}
        self.numbers = sorted(numbers[step] for step in rated)  # as the work page counts steps
        steps = ", ".join(map(str, self.numbers)) or _("none, but an answer on the whole trace differs")
        message = _(
            "Not submitted yet: your ratings in another tab or on another device differ (steps: "
            "%(steps)s). Check these steps, then submit again."
        )
        super().__init__(message % {"steps": steps})
        self.lost = tuple(lost)


class UnseenRatings(AssignmentError):
    """The submission would differ from what the rater confirmed: another client changed the trace. Nothing is
    submitted; the edits that came with the submit are recorded."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "Not submitted yet: your ratings in another tab or on another device differ. Check your "
                "ratings, then submit again."
            )
        )


class AlreadySubmitted(AssignmentError):
    """Another client submitted the trace with a different result than this client confirms. New edits are stored as
    late."""

    def __init__(self) -> None:
        super().__init__(
            _("You already submitted this trace in another tab or on another device. That submission counts.")
        )


class SkipLimitReached(AssignmentError):
    def __init__(self, limit: int) -> None:
        message = _(
            "You have reached today’s limit of %(limit)d skips. If you cannot finish this trace, choose Give up."
        )
        super().__init__(message % {"limit": limit})
        self.limit = limit


class SkipNotAllowed(AssignmentError):
    """Traces of training and screening are the same for all raters and cannot be skipped."""

    def __init__(self) -> None:
        super().__init__(
            _("Training and screening traces cannot be skipped. If you cannot finish this one, choose Give up.")
        )


class CorrectionRefused(AssignmentError):
    """The submission cannot be corrected, or no correction can be requested."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class AssignmentNotOpen(AssignmentError):
    """The action needs an open assignment, and it is no longer open."""

    def __init__(self) -> None:
        super().__init__(_("This trace is no longer assigned to you. Your ratings are saved."))
