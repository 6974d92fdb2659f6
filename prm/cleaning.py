"""Which problems judge PRMs and raters, and what training must leave out so that they can. Reads alone."""

from collections.abc import Sequence

import numpy as np

from labeling.models import Gold, Problem, Project, Trace
from prm.evaluation import contamination
from prm.labels import Labels

_CHUNK = 2000


def judging(project: Project) -> dict[str, list[str]]:
    """The texts of the problems that PRMs (reserve) and raters (gold) are judged on."""
    reserve = Problem.objects.filter(project=project, is_reserve=True).values_list("text", flat=True)
    gold = Gold.objects.filter(trace__project=project).values_list("trace__problem__text", flat=True)
    return {"reserve": sorted(set(reserve)), "gold": sorted(set(gold))}


def problems_of(traces: Sequence[int]) -> list[tuple[str, str]]:
    """Normal digest and text of the problems of these traces, each once."""
    found: dict[str, str] = {}
    for start in range(0, len(traces), _CHUNK):
        rows = Problem.objects.filter(traces__in=traces[start : start + _CHUNK]).distinct()
        found.update(rows.values_list("normal_digest", "text"))
    return list(found.items())


def for_training(project: Project, labels: Labels) -> Labels:
    """Neither the reserve, nor a problem that is like one of it or of gold."""
    outside = labels.keep(~labels.is_reserve)
    learnt = problems_of(outside.traces)
    judged = [text for texts in judging(project).values() for text in texts]
    out = {learnt[n][0] for n in contamination.giving_away(training=[text for _, text in learnt], judged=judged)}
    if not out:
        return outside
    digests: dict[int, str] = {}
    for start in range(0, len(outside.traces), _CHUNK):
        rows = Trace.objects.filter(pk__in=outside.traces[start : start + _CHUNK])
        digests.update(rows.values_list("pk", "problem__normal_digest"))
    return outside.keep(np.array([digests[trace] not in out for trace in outside.traces], dtype=np.bool_))
