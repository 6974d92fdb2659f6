"""Step numbers as people see them: rateable steps from one, context has none. Stored positions are zero-based and
include context."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from labeling.models import Step


@dataclass(frozen=True)
class StepNumbers:
    context: Mapping[int, Sequence[int]]  # positions of context steps, by trace

    def at(self, trace_id: int, position: int) -> int:
        return position + 1 - bisect_left(self.context.get(trace_id, ()), position)


def load_step_numbers(*, trace_ids: Collection[int]) -> StepNumbers:
    """Load the step numbers of a page of traces in one query."""
    context: dict[int, list[int]] = defaultdict(list)
    steps = Step.objects.filter(trace__in=trace_ids, is_rateable=False).order_by("trace", "position")
    for trace, position in steps.values_list("trace_id", "position"):
        context[trace].append(position)
    return StepNumbers(context)
