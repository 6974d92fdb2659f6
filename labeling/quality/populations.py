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
from statements.columns import Column

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


def _place(column: str) -> Column:
    """Of a kind of step among all kinds; -1 for none. What is most frequent is asked for first."""
    usual = StepKind.values.index(StepKind.REASONING)
    kinds = " ".join(f"WHEN '{kind}' THEN {place}" for place, kind in enumerate(StepKind.values) if place != usual)
    return Column(f"CASE {column} WHEN '' THEN -1 WHEN '{StepKind.REASONING}' THEN {usual} {kinds} END")


_COLUMNS = {
    "trace": Column("t.trace_id", 8),
    "problem": Column("t.problem_id", 8),
    "first_rater": Column("t.first_rater_id", 8),
    "second_rater": Column("COALESCE(t.second_rater_id, -1)", 8),
    "generation": Column("t.generation"),
    # 0 for none, -1 for two.
    "guideline": Column("CASE WHEN t.has_two_guidelines THEN -1 ELSE COALESCE(g.version, 0) END"),
    "step_kind": _place("t.step_kind"),
    "first_kind": _place("t.first_kind"),
    "second_kind": _place("t.second_kind"),
    "n_steps": Column("t.n_steps"),
    "first_end": Column("t.first_end"),
    "second_end": Column("COALESCE(t.second_end, -1)"),
    "is_first_censored": Column("CASE WHEN t.is_first_censored THEN 1 ELSE 0 END"),
    "is_second_censored": Column("CASE WHEN t.is_second_censored THEN 1 ELSE 0 END"),
    **{name: Column(f"t.{name}", 2) for name in COUNTERS},
}
_SOURCE = """FROM labeling_tally t LEFT JOIN labeling_guideline g ON g.id = t.guideline_id
WHERE t.project_id = %s AND t.trace_id NOT IN (
  SELECT w.id FROM labeling_trace w WHERE w.project_id = %s AND w.withdrawn_at IS NOT NULL)"""
_KINDS = dict.fromkeys(("step_kind", "first_kind", "second_kind"), StepKind.values)


def read(*, project_id: int) -> Tallied:
    """Every headline tally of a project."""
    blocks = list(columns.numbers(_COLUMNS, _SOURCE, [project_id, project_id]))
    # Column by column, each out of its blocks: all at once they would stand there twice.
    found = {name: np.concatenate([_NONE, *(block.pop(name) for block in blocks)]) for name in _COLUMNS}
    problems, domains = _domains(project_id)
    names = sorted(set(domains))
    place_of = {name: place for place, name in enumerate(names)}
    places = np.array([place_of[domain] for domain in domains], dtype=np.int32)
    found["domain"] = places[np.searchsorted(problems, found["problem"])]
    return Tallied(found, {"domain": names, **_KINDS})


_NONE = np.zeros(0, dtype=np.int8)


def _domains(project_id: int) -> tuple[Ints, list[str]]:
    """The problems of a project in order, and the domain of each."""
    rows = Problem.objects.filter(project_id=project_id).order_by("pk").values_list("pk", "domain")
    found = list(rows.iterator(chunk_size=10_000))
    return np.array([pk for pk, _ in found], dtype=np.int64), [domain for _, domain in found]
