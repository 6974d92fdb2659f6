"""What a batch of draws tells of the whole pool it was drawn from: the share of traces with an error, by the recorded
probabilities. Reads alone."""

from typing import Any

import numpy as np

from labeling.models import Manifest, TraceDraw
from prm import trace_labels
from prm.evaluation import lure

MIN_DRAWS = 20


def estimate_from_batch(*, project_id: int, batch: int, manifest: Manifest) -> dict[str, Any]:
    """From the draws down to the first one that nobody has finished: what lies behind it was not waited for. The loss
    of a trace is the share of its raters who saw an error."""
    shares = trace_labels.load_error_shares(manifest)
    columns = ("trace_id", "q", "pool_size", "trace__problem__domain")
    drawn = list(TraceDraw.objects.filter(project=project_id, batch=batch).order_by("rank").values_list(*columns))
    read = next((n for n, draw in enumerate(drawn) if draw[0] not in shares), len(drawn))
    told: dict[str, Any] = {"batch": batch, "n_drawn": len(drawn), "n": read}
    if read < MIN_DRAWS:
        return told
    losses = np.array([shares[trace] for trace, *_ in drawn[:read]])
    q, domains = np.array([draw[1] for draw in drawn[:read]]), np.array([draw[3] for draw in drawn[:read]])
    pool_size = drawn[0][2]
    found = lure.estimate_pool_mean(losses=losses, q=q, pool_size=pool_size)
    slices = {
        str(domain) or "-": lure.estimate_slice_mean(
            losses=losses, is_in_slice=(domains == domain).astype(np.float64), q=q, pool_size=pool_size
        )
        for domain in sorted(set(domains.tolist()))
    }
    return {**told, "plain": found.plain, "self_normalised": found.self_normalised, "domains": slices}
