"""Where a solver or an agent could slip, and the one slip that is made. Pure.

Whatever tells a trace takes a value by `value(...)` at each such place. Told once without a slip it names the slips it
offers; told again with one of them it makes that slip, and everything after follows from the wrong value, as it does
when a model errs. Everything before it is the same in both tellings.
"""

from dataclasses import dataclass, field
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(kw_only=True)
class Slips:
    slip: str = ""  # the one to make
    offered: dict[str, tuple[int, str]] = field(default_factory=dict)  # slip -> the step it spoils, its kind
    is_slipping: bool = False
    has_slipped: bool = False

    def place(self) -> int:
        """The position of the step that is told next."""
        raise NotImplementedError

    def value(self, slip: str, right: Value, wrong: Value, kind: str) -> Value:
        """The value that the next step is built on: the right one, unless this is the slip to make."""
        if right == wrong:
            return right
        self.offered[slip] = (self.place(), kind)
        if slip != self.slip:
            return right
        self.is_slipping = True
        return wrong

    def makes(self, slip: str, kind: str) -> bool:
        """Whether it slips here, where a slip is more than another value."""
        return self.value(slip, False, True, kind)

    def truth(self) -> int | None:
        """The rating of the step that is told now: right, the error, or left open after it."""
        rating = None if self.has_slipped else -1 if self.is_slipping else 1
        self.has_slipped = self.has_slipped or self.is_slipping
        return rating
