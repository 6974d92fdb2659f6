"""The texts of traces as a PRM reads them. Reads alone."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from labeling.models import Option, Trace
from prm.backends.base import ScorerInput as Asked

CHUNK = 500


@dataclass
class TraceText:
    """A trace's own steps, in order; context among them is read and not rated."""

    trace: int
    problem_id: int
    source: int
    domain: str
    problem: str
    is_right: bool | None
    steps: list[str] = field(default_factory=list)
    is_rateable: list[bool] = field(default_factory=list)

    @property
    def asked(self) -> Asked:
        return Asked(self.problem, self.steps)


_FIELDS = ("pk", "problem_id", "source_id", "problem__domain", "problem__text", "is_right", "n_steps")


def load_trace_texts(trace_ids: Sequence[int]) -> list[TraceText]:
    """In the order of the ids; two queries for each few hundred."""
    return [text for part in _split_chunks(trace_ids) for text in _read_texts(part)]


def _split_chunks(trace_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(trace_ids), CHUNK):
        yield trace_ids[start : start + CHUNK]


def _read_texts(trace_ids: Sequence[int]) -> Iterator[TraceText]:
    steps: defaultdict[int, list[tuple[int, bool, str]]] = defaultdict(list)
    options = Option.objects.filter(step__trace__in=trace_ids, position=0)
    columns = ("step__trace_id", "step__position", "step__is_rateable", "text")
    for trace, position, is_rateable, text in options.values_list(*columns):
        steps[trace].append((position, is_rateable, text))
    rows = {row[0]: row for row in Trace.objects.filter(pk__in=trace_ids).values_list(*_FIELDS)}
    for each in trace_ids:
        pk, problem, source, domain, text, is_right, n_steps = rows[each]
        own = sorted(step for step in steps[pk] if step[0] < n_steps)
        yield TraceText(
            *(pk, problem, source or 0, domain, text, is_right), [step[2] for step in own], [step[1] for step in own]
        )
