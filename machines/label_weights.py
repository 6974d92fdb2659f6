"""The weights of labels by people that make them represent the pool, from the recorded probabilities of draws.

A drawn trace weighs what `prm.selection.draws.lure_weights` gives it: the mean is one, and traces that the policy
preferred weigh less. All other work comes in a shuffled order and weighs one. A trace that a person moved to the front
has no known probability and weighs nothing.

Batches are drawn from pools that differ by the traces labeled before; their estimates are averaged.
"""

from collections import defaultdict
from collections.abc import Collection

import numpy as np

from labeling.models import Assignment, TraceDraw
from labeling.models.assignment import Population
from labeling.models.queue import SamplingSource
from prm.selection import draws


def find_chosen_traces(project_id: int, trace_ids: Collection[int]) -> set[int]:
    """Return those of these traces that the policy drew or a person chose: they do not represent the others."""
    drawn = TraceDraw.objects.filter(project=project_id, trace__in=trace_ids, arm=SamplingSource.POLICY)
    chosen = Assignment.objects.counted().filter(trace__in=trace_ids, population=Population.CHOSEN)
    return {*drawn.values_list("trace", flat=True), *chosen.values_list("trace", flat=True)}


def load_label_weights(project_id: int, trace_ids: Collection[int]) -> dict[int, float]:
    """Return the weights of these traces, without those that weigh nothing."""
    chosen = Assignment.objects.counted().filter(project=project_id, population=Population.CHOSEN)
    left_out = set(chosen.values_list("trace", flat=True))
    weights = {trace: 1.0 for trace in trace_ids if trace not in left_out}
    batches: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
    rows = TraceDraw.objects.filter(project=project_id).order_by("batch", "rank")
    for batch, pool_size, trace, q in rows.values_list("batch", "pool_size", "trace", "q").iterator():
        batches[batch, pool_size].append((trace, q))
    for (_batch, pool_size), drawn in batches.items():
        found = draws.lure_weights(q=np.array([q for _, q in drawn]), pool_size=pool_size)
        for (trace, _q), weight in zip(drawn, found.tolist(), strict=True):
            if trace in weights:
                weights[trace] = max(weight, 0.0)
    return {trace: weight for trace, weight in weights.items() if weight > 0}
