"""The audit slice: traces read that are a simple random sample of the pool, whoever drew them.

What the uniform arm draws is not that sample. It draws from what the policy left over, and a policy that goes for
errors leaves sound traces: measured with 3 of 8 read, alpha over the uniform arm alone was .05 too low. So the uniform
arm goes through the pool in one random order, fixed by the traces themselves (`splits.place`), and skips what was drawn
before. The traces before its furthest draw are the slice: those that the policy drew first belong to it too. (The draw
itself does not: a sample that ends with a trace the policy did not want would be one such trace too many.)

The start of a random permutation is a simple random sample: W. G. Cochran (1977), "Sampling techniques", ch. 2; the
last draw of inverse sampling is left out as by J. B. S. Haldane (1945), doi:10.1093/biomet/33.3.222.
"""

import numpy as np

from stats.arrays import Bools, Floats


def mask_audit_slice(*, places: Floats, is_drawn: Bools, is_uniform: Bools) -> Bools:
    """Which traces belong to the slice; `places` are their fixed places in the random order.

    Traces that came into the pool later, with places before the furthest draw, end the slice until they are drawn.
    """
    furthest = float(places[is_uniform].max(initial=-np.inf))
    first_undrawn = float(places[~is_drawn].min(initial=np.inf))
    end = first_undrawn if is_drawn.all() else min(first_undrawn, furthest)
    return np.asarray(is_drawn & (places < end))
