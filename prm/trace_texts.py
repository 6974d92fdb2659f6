"""The texts of traces as a PRM scores them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from labeling.models import Option, Trace
from prm.backends.base import ScorerInput

_TRACES_PER_QUERY = 500


@dataclass
class TraceText:
    """A trace's own steps in order. Context steps are scored with the others but cannot be rated."""

    trace: int
    problem_id: int
    source: int
    domain: str
    problem: str
    is_right: bool | None
    steps: list[str] = field(default_factory=list)
    is_rateable: list[bool] = field(default_factory=list)

    @property
    def scorer_input(self) -> ScorerInput:
        return ScorerInput(self.problem, self.steps)


def load_trace_texts(trace_ids: Sequence[int]) -> list[TraceText]:
    """Load the texts in the order of the ids, with two queries per chunk."""
    starts = range(0, len(trace_ids), _TRACES_PER_QUERY)
    return [text for start in starts for text in _load_chunk(trace_ids[start : start + _TRACES_PER_QUERY])]


def _load_chunk(trace_ids: Sequence[int]) -> Iterator[TraceText]:
    steps: defaultdict[int, list[tuple[int, bool, str]]] = defaultdict(list)
    options = Option.objects.filter(step__trace__in=trace_ids, position=0)
    columns = ("step__trace_id", "step__position", "step__is_rateable", "text")
    for trace, position, is_rateable, text in options.values_list(*columns):
        steps[trace].append((position, is_rateable, text))
    fields = ("pk", "problem_id", "source_id", "problem__domain", "problem__text", "is_right", "n_steps")
    rows = {row[0]: row for row in Trace.objects.filter(pk__in=trace_ids).values_list(*fields)}
    for trace_id in trace_ids:
        pk, problem_id, source, domain, problem, is_right, n_steps = rows[trace_id]
        own = sorted(step for step in steps[pk] if step[0] < n_steps)
        yield TraceText(
            trace=pk,
            problem_id=problem_id,
            source=source or 0,
            domain=domain,
            problem=problem,
            is_right=is_right,
            steps=[text for _, _, text in own],
            is_rateable=[is_rateable for _, is_rateable, _ in own],
        )
