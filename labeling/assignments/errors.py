"""Why a verb of judging refused, in words for the person who meets it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from labeling.projects import protocols
from labeling.projects.protocols import SubmitState

if TYPE_CHECKING:
    from labeling.assignments.merge import LostEdit


class AssignmentError(Exception):
    """Anything that judging refuses. Its text can be shown to people."""


class AssignmentUnknown(AssignmentError):
    """There is no such assignment in the hands of this rater."""

    def __init__(self) -> None:
        super().__init__(_("There is no such trace in your hands."))


class BatchRefused(AssignmentError):
    """The batch as a whole cannot be: nothing of it was recorded."""


class EditRefused(AssignmentError):
    """One write of a batch cannot be: nothing of the batch was recorded."""

    def __init__(self, message: str, *, index: int, sequence: int, field: str) -> None:
        super().__init__(message)
        self.index, self.sequence, self.field = index, sequence, field


class SubmissionIncomplete(AssignmentError):
    """Ratings are missing. The writes that came with the submit are recorded."""

    def __init__(self, state: SubmitState) -> None:
        super().__init__(
            _("Not submitted yet. %(what_is_missing)s.") % {"what_is_missing": protocols.submit_text(state)}
        )
        self.state = state


class ConflictingEdits(AssignmentError):
    """Ratings that came with the submit lost against another client's: the rater has not seen what stands."""

    def __init__(self, lost: Sequence["LostEdit"]) -> None:
        steps = ", ".join(str(step + 1) for step in sorted({each.step for each in lost}))
        super().__init__(
            _("Not submitted yet: another window of yours rated otherwise at step %(steps)s. Look, then submit again.")
            % {"steps": steps}
        )
        self.lost = tuple(lost)


class SkipLimitReached(AssignmentError):
    def __init__(self, limit: int) -> None:
        super().__init__(
            _("You skipped %(limit)d traces today, which is as many as this project allows.") % {"limit": limit}
        )


class SkipNotAllowed(AssignmentError):
    """A trace of training or screening: everybody gets the same ones."""

    def __init__(self) -> None:
        super().__init__(
            _("Traces of training and screening cannot be skipped. If you cannot go on with this one, give it up.")
        )


class CorrectionRefused(AssignmentError):
    """The submission stands as it is."""


class AssignmentNotOpen(AssignmentError):
    """What was asked for needs a trace that is in the rater's hands, and it no longer is."""

    def __init__(self) -> None:
        super().__init__(_("This trace is no longer in your hands. What you rated is kept."))
