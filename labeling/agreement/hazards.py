"""How likely a first error is at each step, by domain and position, shrunk where little was seen.

    h(domain, position) = (expected first errors + κ h(domain)) / (expected traces still right + κ)

and h(domain) is shrunk towards the hazard of all in the same way. P(E = e) = h_e Π_{i<e} (1 - h_i), none = Π (1 - h_i).

Discrete-time hazards: D. R. Cox (1972), doi:10.1111/j.2517-6161.1972.tb00899.x; shrinking by pseudo-counts: B. Efron,
C. Morris (1975), doi:10.1080/01621459.1975.10479864.
"""

import numpy as np

from labeling.agreement.arrays import Floats, Ints, sum_by
from labeling.agreement.reports import Places

LAST_POSITION = 24  # later positions share one hazard
STRENGTH = 20.0  # traces that the coarser hazard weighs


def fit(*, posterior: Floats, there: Places, domains: Ints) -> Floats:
    """(domains, positions): the hazards that this posterior over places implies."""
    n_domains = int(domains.max()) + 1 if len(domains) else 1
    cell, is_step = _cells(there, domains), ~there.is_none
    size = n_domains * (LAST_POSITION + 1)
    still_right = remaining(posterior, there)
    rows = np.column_stack([still_right, posterior])[is_step]
    summed = sum_by(groups=cell[is_step], rows=rows, n_groups=size).reshape(n_domains, -1, 2)
    seen, errors = summed[..., 0], summed[..., 1]
    overall = (errors.sum() + 1) / (seen.sum() + 10)
    of_domain = _shrunk(errors.sum(axis=1), seen.sum(axis=1), overall)
    return _shrunk(errors, seen, of_domain[:, None])


def log_prior(*, hazards: Floats, there: Places, domains: Ints) -> Floats:
    """The log-probability of each place before any report."""
    h = hazards.ravel()[_cells(there, domains)]
    passed = np.where(there.is_none, 0.0, np.log1p(-h))
    before = np.cumsum(passed) - passed
    before -= before[there.starts[there.traces]]
    return np.asarray(before + np.where(there.is_none, 0.0, np.log(h)))


def remaining(posterior: Floats, there: Places) -> Floats:
    """P(E ≥ this place), the sum of the posterior from here to the end of the trace."""
    running = np.cumsum(posterior)
    ends = np.append(there.starts[1:], there.n) - 1
    until_end = running[ends][there.traces] if there.n else running
    return np.asarray(until_end - running + posterior)


def _cells(there: Places, domains: Ints) -> Ints:
    return domains[there.traces] * (LAST_POSITION + 1) + np.minimum(there.steps, LAST_POSITION)


def _shrunk(errors: Floats, seen: Floats, towards: Floats) -> Floats:
    return np.clip((errors + STRENGTH * towards) / (seen + STRENGTH), 1e-6, 1 - 1e-6)
