"""Which traces people read next. Pure: numbers in, draws with known probabilities out.

What a PRM says becomes a hazard per step (`semantics`, `platt`), hazards become the chances of the first error
(`survival`), an acquisition scores each trace (`acquisitions`), and a batch is drawn in order (`draws`).
"""
