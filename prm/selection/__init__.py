"""Which traces people label next. Pure: numbers in, draws with known probabilities out.

A PRM's score becomes a hazard per step (`semantics`, `platt`), hazards become probabilities of the first error
(`pool`), an acquisition function scores each trace (`acquisitions`, `cost`), and `draws` turns the score into a
probability of being drawn.
"""
