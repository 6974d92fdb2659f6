"""Which problems judge PRMs and raters here, and what training must leave out so that they can. Reads alone."""

from collections.abc import Sequence

import numpy as np
from django.db.models import Q

from labeling.models import Gold, Problem, Project, Trace
from labeling.models.quality import GoldUse
from prm.evaluation import contamination
from prm.labels import Labels

_CHUNK = 2000


def judging(project: Project) -> list[str]:
    """The texts of the problems that PRMs (reserve, any project's canaries) and raters (gold) are judged on."""
    reserve = Problem.objects.filter(project=project, is_reserve=True).values_list("text", flat=True)
    gold = Gold.objects.filter(Q(trace__project=project) | Q(use=GoldUse.CANARY))
    return sorted({*reserve, *gold.values_list("trace__problem__text", flat=True)})


def problems_of(traces: Sequence[int]) -> list[tuple[str, str]]:
    """Normal digest and text of the problems of these traces, each once."""
    found: dict[str, str] = {}
    for start in range(0, len(traces), _CHUNK):
        rows = Problem.objects.filter(traces__in=traces[start : start + _CHUNK]).distinct()
        found.update(rows.values_list("normal_digest", "text"))
    return list(found.items())


def for_training(project: Project, labels: Labels) -> Labels:
    """Neither the reserve, nor a problem that is like one of it, of gold or of a canary."""
    outside = labels.keep(~labels.is_reserve)
    learnt = problems_of(outside.traces)
    giving_away = contamination.giving_away(training=[text for _, text in learnt], judged=judging(project))
    out = {learnt[n][0] for n in giving_away}
    if not out:
        return outside
    digests: dict[int, str] = {}
    for start in range(0, len(outside.traces), _CHUNK):
        rows = Trace.objects.filter(pk__in=outside.traces[start : start + _CHUNK])
        digests.update(rows.values_list("pk", "problem__normal_digest"))
    return outside.keep(np.array([digests[trace] not in out for trace in outside.traces], dtype=np.bool_))
