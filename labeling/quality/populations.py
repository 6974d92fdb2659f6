"""Reads the headline of a project from its tallies, as arrays that statistics are computed from. Reads only.

Withdrawn traces count nowhere. Where a policy has chosen traces, only those of the audit slice count: a simple random
sample of the pool, whoever drew them. Which they are is told by the room that draws; it registers itself here.

All tallies are read once, by one statement, and told apart in memory: a million of them take a hundred megabytes.
"""

from collections.abc import Callable, Collection

import numpy as np

from labeling.agreement.arrays import Ints
from labeling.models import Draw, Problem
from labeling.models.queue import Arm
from labeling.models.trace import StepKind
from labeling.quality.tallied import Tallied
from labeling.quality.tallies import COUNTERS
from statements import columns

Slice = Callable[[int], Collection[int]]
_slices: list[Slice] = []


def register(slice_of: Slice) -> None:
    """For `AppConfig.ready` of the room that draws: gives the audit slice of a project, by its traces."""
    if slice_of not in _slices:
        _slices.append(slice_of)


def slice_of(project_id: int) -> list[int] | None:
    """The traces that the headline rests on; None for all that were read, where no policy has chosen any."""
    if not Draw.objects.filter(project_id=project_id, arm=Arm.POLICY).exists():
        return None
    return sorted(set().union(*(each(project_id) for each in _slices)))


# Who and which are numbers of rows; whatever else is small.
_WHO = {
    "trace": "t.trace_id",
    "problem": "t.problem_id",
    "first_rater": "t.first_rater_id",
    "second_rater": "COALESCE(t.second_rater_id, -1)",
}


def _place(column: str) -> str:
    kinds = " ".join(f"WHEN '{kind}' THEN {place}" for place, kind in enumerate(StepKind.values))
    return f"CASE {column} {kinds} ELSE -1 END"


_WHAT = {
    "generation": "t.generation",
    "guideline": "CASE WHEN t.has_two_guidelines THEN -1 ELSE COALESCE(g.version, 0) END",  # 0 for none, -1 for two
    "step_kind": _place("t.step_kind"),
    "first_kind": _place("t.first_kind"),
    "second_kind": _place("t.second_kind"),
    "n_steps": "t.n_steps",
    "first_end": "t.first_end",
    "second_end": "COALESCE(t.second_end, -1)",
    "is_first_censored": "CASE WHEN t.is_first_censored THEN 1 ELSE 0 END",
    "is_second_censored": "CASE WHEN t.is_second_censored THEN 1 ELSE 0 END",
    **{name: f"t.{name}" for name in COUNTERS},
}
_SOURCE = """FROM labeling_tally t LEFT JOIN labeling_guideline g ON g.id = t.guideline_id
WHERE t.project_id = %s AND t.trace_id NOT IN (
  SELECT w.id FROM labeling_trace w WHERE w.project_id = %s AND w.withdrawn_at IS NOT NULL)"""
_KINDS = dict.fromkeys(("step_kind", "first_kind", "second_kind"), StepKind.values)


def read(*, project_id: int) -> Tallied:
    """Every headline tally of a project."""
    asked = [*_WHO.values(), *_WHAT.values()]
    blocks = [_split(block) for block in columns.numbers(asked, _SOURCE, [project_id, project_id])]
    # Column by column, each out of its blocks: all at once they would stand there twice.
    found = {name: np.concatenate([_NONE, *(block.pop(name) for block in blocks)]) for name in (*_WHO, *_WHAT)}
    problems, domains = _domains(project_id)
    names = sorted(set(domains))
    place_of = {name: place for place, name in enumerate(names)}
    places = np.array([place_of[domain] for domain in domains], dtype=np.int32)
    found["domain"] = places[np.searchsorted(problems, found["problem"])]
    return Tallied(found, {"domain": names, **_KINDS})


_NONE = np.zeros(0, dtype=np.int32)


def _split(block: Ints) -> dict[str, Ints]:
    """A block of rows as columns, in no more memory than they need."""
    parts = zip((*_WHO, *_WHAT), block.T, strict=True)
    return {name: part.astype(np.int64 if name in _WHO else np.int32) for name, part in parts}


def _domains(project_id: int) -> tuple[Ints, list[str]]:
    """The problems of a project in order, and the domain of each."""
    rows = Problem.objects.filter(project_id=project_id).order_by("pk").values_list("pk", "domain")
    found = list(rows.iterator(chunk_size=10_000))
    return np.array([pk for pk, _ in found], dtype=np.int64), [domain for _, domain in found]
