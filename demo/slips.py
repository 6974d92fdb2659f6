"""The possible slips in a generated trace, and the one that is made. Pure.

A generator gets each value that could go wrong from `value(...)`. A run without a slip collects the possible slips. A
run with one of them makes it, and all later steps follow from the wrong value, as when a model errs. The steps before
the slip are the same in both runs.
"""

from dataclasses import dataclass, field
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(kw_only=True)
class Slips:
    slip: str = ""  # the slip to make
    offered: dict[str, tuple[int, str]] = field(
        default_factory=dict
    )  # slip -> position of the step it makes wrong, and its kind
    is_slipping: bool = False
    has_slipped: bool = False

    def place(self) -> int:
        """Return the position of the next step."""
        raise NotImplementedError

    def value(self, slip: str, right: Value, wrong: Value, kind: str) -> Value:
        """Return the value for the next step: the right one, unless this is the slip to make."""
        if right == wrong:
            return right
        self.offered[slip] = (self.place(), kind)
        if slip != self.slip:
            return right
        self.is_slipping = True
        return wrong

    def makes(self, slip: str, kind: str) -> bool:
        """Return whether to make this slip, for slips that change more than a value."""
        return self.value(slip, False, True, kind)

    def truth(self) -> int | None:
        """Return the true rating of the current step: 1, -1 for the error, or None after the error."""
        rating = None if self.has_slipped else -1 if self.is_slipping else 1
        self.has_slipped = self.has_slipped or self.is_slipping
        return rating
