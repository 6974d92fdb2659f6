"""Estimate the share of traces with an error in the whole pool, from the labels of one batch and its probabilities."""

from typing import Any

import numpy as np

from labeling.models import Manifest, TraceDraw
from prm import trace_labels
from prm.evaluation import lure

MIN_DRAWS = 20


def estimate_from_batch(*, project_id: int, batch: int, manifest: Manifest) -> dict[str, Any]:
    """Estimate from the draws before the first unlabeled one: q is valid only for an unbroken sequence.

    The loss of a trace is the share of its raters who reported an error.
    """
    shares = trace_labels.load_error_shares(manifest)
    columns = ("trace_id", "q", "pool_size", "trace__problem__domain")
    draws = list(TraceDraw.objects.filter(project=project_id, batch=batch).order_by("rank").values_list(*columns))
    n_labeled = next((n for n, draw in enumerate(draws) if draw[0] not in shares), len(draws))
    counts: dict[str, Any] = {"batch": batch, "n_drawn": len(draws), "n": n_labeled}
    if n_labeled < MIN_DRAWS:
        return counts
    traces, probabilities, pool_sizes, domains = zip(*draws[:n_labeled], strict=True)
    losses, q, domain_names = np.array([shares[trace] for trace in traces]), np.array(probabilities), np.array(domains)
    estimate = lure.estimate_pool_mean(losses=losses, q=q, pool_size=pool_sizes[0])
    by_domain = {
        domain or "-": lure.estimate_slice_mean(
            losses=losses, is_in_slice=(domain_names == domain).astype(np.float64), q=q, pool_size=pool_sizes[0]
        )
        for domain in sorted(set(domains))
    }
    return {**counts, "plain": estimate.plain, "self_normalised": estimate.self_normalized, "domains": by_domain}
