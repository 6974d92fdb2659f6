"""Draw a batch from a pool by the name of an acquisition function."""

import numpy as np

from prm.selection import acquisitions, draws
from prm.selection.acquisitions import Pool, ReadingRates
from prm.selection.draws import DrawRules, PoolDraw
from stats.arrays import Floats


def draw_batch(
    pool: Pool,
    *,
    acquisition: str,
    reading: ReadingRates,
    places: Floats,
    size: int,
    rules: DrawRules,
    random: np.random.Generator,
) -> list[PoolDraw]:
    """Draw at most `size` traces. Only the default acquisition function uses strata and spreads its draws."""
    if not pool.n:
        return []
    is_default = acquisition == acquisitions.DEFAULT
    return draws.draw_in_order(
        scores=acquisitions.acquisition_scores(acquisition, pool, reading),
        problems=pool.problems,
        domains=pool.domains,
        places=places,
        size=size,
        rules=rules,
        random=random,
        strata=acquisitions.outcome_strata(pool) if is_default else None,
        features=acquisitions.spread_features(pool) if is_default else None,
    )
