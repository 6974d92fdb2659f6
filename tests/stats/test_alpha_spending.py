import math

import pytest

from stats.alpha_spending import compute_boundaries, spend_like_obrien_fleming

FIFTHS = tuple(look / 5 for look in range(1, 6))


def test_boundaries_are_those_published_for_five_looks() -> None:
    """Lan and DeMets' spending functions at α = .025, as printed by the program of D. M. Reboussin et al. (2000),
    doi:10.1016/S0197-2456(00)00057-X."""
    spent = tuple(spend_like_obrien_fleming(share, 0.025) for share in FIFTHS)
    assert compute_boundaries(FIFTHS, spent) == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=3e-4)
    pocock = tuple(0.025 * math.log(1 + (math.e - 1) * share) for share in FIFTHS)
    assert compute_boundaries(FIFTHS, pocock) == pytest.approx([2.4380, 2.4268, 2.4101, 2.3966, 2.3859], abs=3e-4)


def test_one_look_spends_everything() -> None:
    assert compute_boundaries((7.0,), (0.05,)) == pytest.approx([1.6449], abs=1e-4)
    assert spend_like_obrien_fleming(0, 0.05) == 0
    assert spend_like_obrien_fleming(1.5, 0.05) == pytest.approx(0.05)
